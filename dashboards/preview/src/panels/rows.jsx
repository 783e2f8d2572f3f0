// A plot of rows over time on the plotting library and axes that Grafana uses: the frame of state timeline and heatmap.
import React from 'react';
import { AxisPlacement, UPlotChart, UPlotConfigBuilder, useTheme2 } from '@grafana/ui';
import { draw as drawAnnotations } from './annotations.jsx';

/**
 * `times` are milliseconds, `rows` the number of rows from below, `ticks` their labels as `[position, text]`,
 * `paint` draws: it gets `{plot, ctx, x(milliseconds), y(row)}` in pixels of the canvas.
 */
export function Rows({ times, rows, ticks, paint, range, timeZone, annotations, width, height, axisWidth }) {
  const theme = useTheme2();
  const config = React.useMemo(() => {
    const builder = new UPlotConfigBuilder(timeZone);
    builder.addScale({ scaleKey: 'x', isTime: true, orientation: 0, direction: 1, range: () => [range.from.valueOf(), range.to.valueOf()] });
    builder.addScale({ scaleKey: 'y', isTime: false, orientation: 1, direction: 1, range: () => [0, rows] });
    builder.addAxis({ scaleKey: 'x', isTime: true, placement: AxisPlacement.Bottom, timeZone, theme, grid: { show: false } });
    builder.addAxis({
      scaleKey: 'y',
      placement: AxisPlacement.Left,
      theme,
      size: axisWidth,
      grid: { show: false },
      ticks: { show: false },
      splits: () => ticks.map(([at]) => at),
      values: () => ticks.map(([, text]) => text),
    });
    builder.addSeries({ scaleKey: 'y', theme, pathBuilder: () => null, pointsBuilder: () => null, show: true });
    builder.addHook('draw', (plot) => {
      const { ctx, bbox } = plot;
      ctx.save();
      ctx.beginPath();
      ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
      ctx.clip();
      paint({ plot, ctx, x: (at) => plot.valToPos(at, 'x', true), y: (row) => plot.valToPos(row, 'y', true), theme });
      ctx.restore();
      drawAnnotations(plot, annotations, theme);
    });
    builder.setCursor({ show: false });
    builder.setPrepData(() => [times, times.map(() => null)]);
    return builder;
  }, []);
  return <UPlotChart config={config} data={config.prepData()} width={width} height={height} timeRange={range} />;
}
