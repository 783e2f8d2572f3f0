// Tables: Grafana's own widget.
import React from 'react';
import { TableNG } from '@grafana/ui/unstable';
import { problem } from '../problems.js';

export function TablePanel({ panel, data, range, width, height }) {
  const { frameIndex = 0, showHeader = true, sortBy, cellHeight, enablePagination, frozenColumns } = panel.options ?? {};
  const several = data.frames.length > 1;
  React.useEffect(() => {
    if (several) problem(panel.title, `${data.frames.length} tables where one is shown: a merge or join is missing`);
  }, [several]);
  const frame = data.frames[frameIndex] ?? data.frames[0];
  return (
    <TableNG
      data={frame}
      width={width}
      height={height}
      noHeader={!showHeader}
      sortBy={sortBy}
      cellHeight={cellHeight}
      enablePagination={enablePagination}
      frozenColumns={frozenColumns?.left}
      fieldConfig={data.fieldConfig}
      timeRange={range}
      noValue={data.fieldConfig.defaults.noValue}
      structureRev={1}
      showTypeIcons={panel.options?.showTypeIcons}
    />
  );
}
