// Heatmaps of buckets, drawn here with the colour scales that Grafana names.
import React from 'react';
import { FieldType, formattedValueToString, getValueFormat } from '@grafana/data';
import { useTheme2, VizLayout } from '@grafana/ui';
import * as scales from 'd3-scale-chromatic';
import { problem } from '../problems.js';
import { Rows } from './rows.jsx';

/** Schemes that Grafana turns round: always, or on one kind of ground, so that more stands out from it. */
const TURNED = {
  always: ['BrBG', 'PiYG', 'PRGn', 'PuOr', 'RdBu', 'RdGy', 'RdYlBu', 'RdYlGn', 'Spectral', 'Rainbow', 'Sinebow'],
  light: ['Turbo', 'Cividis', 'Viridis', 'Magma', 'Inferno', 'Plasma', 'Warm', 'Cool', 'Cubehelix'],
};

function isTurned({ scheme, reverse }, theme) {
  if (reverse || TURNED.always.includes(scheme)) return true;
  return TURNED.light.includes(scheme) ? theme.isLight : theme.isDark;
}

export function HeatmapPanel({ panel, data, range, timeZone, annotations, width, height }) {
  const theme = useTheme2();
  const options = panel.options ?? {};
  const color = { mode: 'scheme', scheme: 'Oranges', steps: 64, exponent: 0.5, reverse: false, ...options.color };
  const frame = data.frames[0];
  const time = frame.fields.find(({ type }) => type === FieldType.time);
  const buckets = frame.fields.filter(({ type }) => type === FieldType.number);
  React.useEffect(() => {
    if (options.calculate) problem(panel.title, 'the preview draws buckets that a query gives, and computes none');
  }, []);
  const hidden = options.filterValues?.le ?? 1e-9;
  const all = buckets.flatMap(({ values }) => values.filter((value) => value > hidden));
  const low = color.min ?? Math.min(...all);
  const high = color.max ?? Math.max(...all);
  const turned = isTurned(color, theme);
  const shade = (value) => {
    const part = Math.min(1, Math.max(0, (value - low) / (high - low || 1)));
    if (color.mode === 'opacity') return [color.fill ?? 'dark-orange', part ** (color.exponent ?? 0.5)];
    const step = Math.round(part * (color.steps - 1)) / (color.steps - 1);
    const interpolate = scales[`interpolate${color.scheme}`] ?? scales.interpolateOranges;
    return [interpolate(turned ? 1 - step : step), 1];
  };
  const step = time.config.interval || time.values[1] - time.values[0];
  const paint = ({ ctx, x, y }) => {
    const gap = (options.cellGap ?? 1) * globalThis.devicePixelRatio;
    buckets.forEach(({ values }, row) => {
      values.forEach((value, i) => {
        if (!(value > hidden)) return;
        const [fill, alpha] = shade(value);
        ctx.globalAlpha = alpha;
        ctx.fillStyle = theme.visualization.getColorByName(fill);
        const [left, right, top, bottom] = [x(time.values[i] - step), x(time.values[i]), y(row + 1), y(row)];
        ctx.fillRect(left, top, Math.max(1, right - left - gap), Math.max(1, bottom - top - gap));
      });
    });
    ctx.globalAlpha = 1;
  };
  const format = getValueFormat(options.yAxis?.unit ?? 'short');
  const bound = (text) => (Number.isFinite(Number(text)) ? formattedValueToString(format(Number(text), options.yAxis?.decimals)) : text);
  const room = Math.max(1, Math.ceil((buckets.length * 16) / Math.max(1, height - 40)));
  const ticks = buckets.map(({ name }, i) => [i + 1, bound(name)]).filter((_, i) => i % room === 0 && i < buckets.length - 1);
  const legend = options.legend?.show !== false && all.length > 0 && (
    <VizLayout.Legend placement="bottom">
      <Scale low={low} high={high} shade={shade} format={getValueFormat(options.cellValues?.unit ?? 'short')} />
    </VizLayout.Legend>
  );
  return (
    <VizLayout width={width} height={height} legend={legend || null}>
      {(w, h) => (
        <Rows
          times={time.values}
          rows={buckets.length}
          ticks={ticks}
          paint={paint}
          range={range}
          timeZone={timeZone}
          annotations={annotations}
          width={w}
          height={h}
        />
      )}
    </VizLayout>
  );
}

function Scale({ low, high, shade, format }) {
  const parts = Array.from({ length: 40 }, (_, i) => shade(low + ((high - low) * i) / 39)[0]);
  const text = (value) => formattedValueToString(format(value));
  return (
    <div style={{ display: 'flex', gap: 8, alignItems: 'center', fontSize: 12, padding: '2px 8px' }}>
      {text(low)}
      <div style={{ width: 200, height: 8, background: `linear-gradient(to right, ${parts.join(',')})` }} />
      {text(high)}
    </div>
  );
}
