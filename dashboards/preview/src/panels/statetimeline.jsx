// State timelines, drawn here: each field a row, each unbroken state a bar in the colour of its value.
import React from 'react';
import { FieldType, formattedValueToString, getFieldDisplayName } from '@grafana/data';
import { getTextColorForBackground, useTheme2, VizLayout, VizLegend } from '@grafana/ui';
import { problem } from '../problems.js';
import { Rows } from './rows.jsx';

/**
 * Where equal values are merged and colours come from thresholds, Grafana shows the threshold that a value lies in, and
 * value mappings count for nothing (https://github.com/grafana/grafana/issues/71804).
 */
function byThreshold(field, theme) {
  const { steps } = field.config.thresholds;
  const bound = (value) => formattedValueToString(field.display(value)).trim();
  return (value) => {
    const at = steps.findLastIndex((step) => value >= step.value);
    const below = at === 0 && steps.length > 1;
    const { color } = steps[at];
    return { text: below ? `< ${bound(steps[1].value)}` : `${at ? bound(steps[at].value) : '-Infinity'}+`, color: theme.visualization.getColorByName(color) };
  };
}

const losesMappings = (field, merged) =>
  merged && field.type === FieldType.number && field.config.color?.mode === 'thresholds' && field.config.thresholds?.steps.length > 0;

/** `{name, bars: [{from, to, color, text}]}` per field; equal neighbours are one bar, a missing sample ends it. */
function rowsOf(frames, end, merged, theme) {
  return frames.flatMap((frame) => {
    const time = frame.fields.find(({ type }) => type === FieldType.time);
    if (!time) return [];
    const gap = (time.config.interval || Infinity) * 1.5;
    return frame.fields.filter((field) => field !== time).map((field) => {
      const bars = [];
      const shownAs = losesMappings(field, merged) ? byThreshold(field, theme) : (value) => field.display(value);
      let last;
      field.values.forEach((value, i) => {
        const at = time.values[i];
        if (last && at - last > gap && bars.length) bars.at(-1).to = last + time.config.interval;
        const broken = last === undefined || at - last > gap;
        last = value === null || value === undefined ? undefined : at;
        if (last === undefined) {
          if (bars.length && !bars.at(-1).to) bars.at(-1).to = at;
          return;
        }
        const shown = shownAs(value);
        const text = formattedValueToString(shown);
        const open = bars.at(-1);
        if (merged && !broken && open && !open.to && open.text === text && open.color === shown.color) return;
        if (open && !open.to) open.to = at;
        bars.push({ from: at, color: shown.color, text });
      });
      if (bars.length && !bars.at(-1).to) bars.at(-1).to = Math.min(end, last + (time.config.interval || 0));
      return { name: getFieldDisplayName(field, frame, frames), bars };
    });
  });
}

export function StateTimelinePanel({ panel, data, range, timeZone, annotations, width, height }) {
  const theme = useTheme2();
  const options = { rowHeight: 0.9, showValue: 'auto', alignValue: 'left', ...panel.options };
  const merged = options.mergeValues !== false;
  const rows = rowsOf(data.frames, range.to.valueOf(), merged, theme).reverse();
  const lost = data.frames.some(({ fields }) => fields.some((field) => losesMappings(field, merged) && field.config.mappings?.length));
  React.useEffect(() => {
    if (lost) problem(panel.title, 'Grafana ignores its value mappings: merged values need another colour mode than thresholds');
  }, [lost]);
  const opacity = (data.fieldConfig.defaults.custom.fillOpacity ?? 70) / 100;
  const times = [range.from.valueOf(), range.to.valueOf()];
  const states = new Map(rows.flatMap(({ bars }) => bars.map(({ text, color }) => [text, color])));
  const legend = options.legend?.showLegend && states.size > 0 && (
    <VizLayout.Legend placement={options.legend.placement ?? 'bottom'}>
      <VizLegend
        placement={options.legend.placement ?? 'bottom'}
        displayMode="list"
        items={[...states].map(([label, color]) => ({ label, color, yAxis: 1 }))}
      />
    </VizLayout.Legend>
  );
  const paint = ({ ctx, x, y }) => {
    const ratio = globalThis.devicePixelRatio;
    rows.forEach(({ bars }, row) => {
      const middle = y(row + 0.5);
      const tall = (y(row) - y(row + 1)) * options.rowHeight;
      for (const { from, to, color, text } of bars) {
        const [left, right] = [x(from), x(to)];
        ctx.globalAlpha = opacity;
        ctx.fillStyle = color;
        ctx.fillRect(left, middle - tall / 2, right - left, tall);
        ctx.globalAlpha = 1;
        if (options.showValue === 'never') continue;
        ctx.font = `${12 * ratio}px Inter, Helvetica, Arial, sans-serif`;
        const wide = ctx.measureText(text).width + 8 * ratio;
        if (options.showValue === 'auto' && (wide > right - left || tall < 12 * ratio)) continue;
        ctx.fillStyle = opacity > 0.5 ? getTextColorForBackground(color) : theme.colors.text.primary;
        ctx.textBaseline = 'middle';
        ctx.textAlign = 'left';
        const start = { left: left + 4 * ratio, center: (left + right - wide) / 2 + 4 * ratio, right: right - wide + 4 * ratio };
        ctx.fillText(text, start[options.alignValue], middle);
      }
    });
  };
  return (
    <VizLayout width={width} height={height} legend={legend || null}>
      {(w, h) => (
        <Rows
          times={times}
          rows={Math.max(1, rows.length)}
          ticks={rows.map(({ name }, i) => [i + 0.5, name])}
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
