// Bar charts of one table, drawn here: a bar per value of the x field, its number fields side by side or stacked.
import React from 'react';
import { FieldType, formattedValueToString, getFieldDisplayName, getFieldSeriesColor } from '@grafana/data';
import { useTheme2, VizLayout, VizLegend } from '@grafana/ui';
import { niceTicks } from '../ticks.js';

const AXIS = 22;
const LETTER = 6.6;
const BINARY = /^(bytes|bits|[kmgtp]bytes|binBps|binbps|[KMGTP]i(Bs|bits))$/;

export function BarChartPanel({ panel, data, width, height }) {
  const theme = useTheme2();
  const options = { orientation: 'auto', stacking: 'none', barWidth: 0.97, groupWidth: 0.7, ...panel.options };
  const frame = data.frames[0];
  const lanes = frame.fields.find((field) => getFieldDisplayName(field, frame) === options.xField || field.name === options.xField) ?? frame.fields.find(({ type }) => type !== FieldType.number);
  const fields = frame.fields.filter((field) => field !== lanes && field.type === FieldType.number);
  const bars = fields.map((field) => ({
    field,
    name: getFieldDisplayName(field, frame),
    color: getFieldSeriesColor(field, theme).color,
    hidden: field.config.custom?.hideFrom ?? {},
    opacity: field.config.custom?.fillOpacity ?? 80,
  }));
  const legend = options.legend?.showLegend !== false && (
    <VizLayout.Legend placement={options.legend?.placement ?? 'bottom'}>
      <VizLegend
        placement={options.legend?.placement ?? 'bottom'}
        displayMode="list"
        items={bars.filter(({ hidden }) => !hidden.legend).map(({ name, color }) => ({ label: name, color, yAxis: 1 }))}
      />
    </VizLayout.Legend>
  );
  return (
    <VizLayout width={width} height={height} legend={legend || null}>
      {(w, h) => <Bars {...{ lanes, bars: bars.filter(({ hidden }) => !hidden.viz), options, theme }} width={w} height={h} />}
    </VizLayout>
  );
}

function Bars({ lanes, bars, options, theme, width, height }) {
  const names = lanes.values.map((value) => formattedValueToString(lanes.display(value)));
  const stacked = options.stacking !== 'none';
  const horizontal = options.orientation === 'horizontal' || (options.orientation === 'auto' && width < height);
  const sums = names.map((_, i) => bars.reduce((sum, { field }) => (stacked ? sum + (field.values[i] ?? 0) : Math.max(sum, field.values[i] ?? 0)), 0));
  const ticks = niceTicks(0, Math.max(...sums, 0) || 1, horizontal ? Math.max(2, width / 120) : Math.max(2, height / 50), BINARY.test(bars[0]?.field.config.unit));
  const top = Math.max(ticks.at(-1), ...sums);
  const display = bars[0]?.field.display;
  const label = (value) => (display ? formattedValueToString(display(value)) : String(value));
  const widest = Math.max(...(horizontal ? names : ticks.map(label)).map((text) => text.length)) * LETTER + 10;
  const plot = { left: widest, top: 8, width: width - widest - 12, height: height - AXIS - 8 };
  const lane = (horizontal ? plot.height : plot.width) / names.length;
  const along = (value) => (value / top) * (horizontal ? plot.width : plot.height);
  const text = { fill: theme.colors.text.primary, fontSize: 12 };
  const grid = { stroke: theme.isDark ? 'rgba(240, 250, 255, 0.09)' : 'rgba(0, 10, 23, 0.09)' };
  const rectangles = names.flatMap((_, i) => {
    let from = 0;
    return bars.map(({ field, name, color, opacity }, k) => {
      const value = field.values[i];
      const start = stacked ? from : 0;
      from += value ?? 0;
      if (!(value > 0)) return null;
      const room = lane * (stacked ? options.barWidth : options.groupWidth);
      const thick = stacked ? room : room / bars.length;
      const across = i * lane + (lane - room) / 2 + (stacked ? 0 : k * thick);
      const at = horizontal
        ? { x: plot.left + along(start), y: plot.top + across, width: along(value), height: thick }
        : { x: plot.left + across, y: plot.top + plot.height - along(start + value), width: thick, height: along(value) };
      return (
        <rect key={`${i}-${k}`} {...at} fill={color} fillOpacity={opacity / 100}>
          <title>{`${name}: ${formattedValueToString(field.display(value))}`}</title>
        </rect>
      );
    });
  });
  return (
    <svg width={width} height={height} style={{ fontVariantNumeric: 'tabular-nums' }}>
      {ticks.map((tick) => {
        const x = plot.left + along(tick);
        const y = plot.top + plot.height - along(tick);
        return horizontal ? (
          <g key={tick}>
            <line x1={x} x2={x} y1={plot.top} y2={plot.top + plot.height} {...grid} />
            <text x={x} y={height - 6} textAnchor="middle" {...text}>{label(tick)}</text>
          </g>
        ) : (
          <g key={tick}>
            <line x1={plot.left} x2={plot.left + plot.width} y1={y} y2={y} {...grid} />
            <text x={plot.left - 6} y={y + 4} textAnchor="end" {...text}>{label(tick)}</text>
          </g>
        );
      })}
      {rectangles}
      {names.map((name, i) =>
        horizontal ? (
          <text key={name} x={plot.left - 6} y={plot.top + (i + 0.5) * lane + 4} textAnchor="end" {...text}>{name}</text>
        ) : (
          <text key={name} x={plot.left + (i + 0.5) * lane} y={height - 6} textAnchor="middle" {...text}>{name}</text>
        )
      )}
    </svg>
  );
}
