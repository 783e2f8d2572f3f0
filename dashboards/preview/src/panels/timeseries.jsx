// Time series: Grafana's own widget, with annotations drawn over it.
import React from 'react';
import { LegendDisplayMode, TimeSeries, TooltipPlugin } from '@grafana/ui';
import { Annotations } from './annotations.jsx';

export function TimeSeriesPanel({ panel, data, range, timeZone, annotations, width, height }) {
  const legend = panel.options?.legend ?? {};
  return (
    <TimeSeries
      frames={data.frames}
      structureRev={1}
      timeRange={range}
      timeZone={timeZone}
      width={width}
      height={height}
      legend={{ calcs: [], displayMode: LegendDisplayMode.List, placement: 'bottom', showLegend: true, ...legend }}
    >
      {(config, alignedFrame) => (
        <>
          <Annotations config={config} annotations={annotations} />
          <TooltipPlugin config={config} data={alignedFrame} frames={data.frames} mode="multi" sortOrder="desc" timeZone={timeZone} />
        </>
      )}
    </TimeSeries>
  );
}
