// Annotations as Grafana draws them: a dashed line at each end, the time between tinted, a mark below the axis.
import { useLayoutEffect } from 'react';
import { useTheme2 } from '@grafana/ui';

const MARK = 5;

export function Annotations({ config, annotations }) {
  const theme = useTheme2();
  useLayoutEffect(() => {
    config.addHook('draw', (plot) => draw(plot, annotations, theme));
  }, [config, annotations, theme]);
  return null;
}

export function draw(plot, annotations, theme) {
  const { ctx, bbox } = plot;
  const ratio = globalThis.devicePixelRatio;
  ctx.save();
  for (const { from, to, color: name } of annotations) {
    const color = theme.visualization.getColorByName(name);
    const left = Math.max(bbox.left, plot.valToPos(from, 'x', true));
    const right = Math.min(bbox.left + bbox.width, plot.valToPos(to, 'x', true));
    if (right < bbox.left || left > bbox.left + bbox.width) continue;
    ctx.strokeStyle = ctx.fillStyle = color;
    ctx.lineWidth = 2 * ratio;
    ctx.setLineDash([5 * ratio, 5 * ratio]);
    for (const x of to > from ? [left, right] : [left]) line(ctx, x, bbox);
    ctx.globalAlpha = 0.1;
    ctx.fillRect(left, bbox.top, right - left, bbox.height);
    ctx.globalAlpha = 1;
    const below = bbox.top + bbox.height;
    if (right - left > MARK * ratio) ctx.fillRect(left, below, right - left, MARK * ratio);
    else triangle(ctx, left, below, MARK * ratio);
  }
  ctx.restore();
}

function line(ctx, x, { top, height }) {
  ctx.beginPath();
  ctx.moveTo(x, top);
  ctx.lineTo(x, top + height);
  ctx.stroke();
}

function triangle(ctx, x, y, size) {
  ctx.beginPath();
  ctx.moveTo(x, y);
  ctx.lineTo(x - size, y + size);
  ctx.lineTo(x + size, y + size);
  ctx.fill();
}
