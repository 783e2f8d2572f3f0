// Answers of Prometheus as data frames, in the shapes that Grafana's Prometheus data source makes of them.
import { createDataFrame, FieldType } from '@grafana/data';
import { selectorOf } from './prometheus.js';

const number = (text) => Number(text.replace('Inf', 'Infinity'));

function legendOf(metric, target, expression) {
  const format = target.legendFormat;
  if (format && format !== '__auto') return format.replace(/\{\{\s*(.+?)\s*\}\}/g, (_, label) => metric[label] ?? '');
  if (format === '__auto') return Object.keys(metric).length ? undefined : expression;
  return Object.keys(metric).length ? selectorOf(metric) : expression;
}

/** One frame per series, each with a time and a value. `step` is in seconds, 0 for instant queries. */
export function seriesFrames(result, target, expression, step) {
  return result.map((series) => {
    const samples = series.values ?? [series.value];
    const labels = { ...series.metric };
    const legend = legendOf(series.metric, target, expression);
    delete labels.__name__;
    return createDataFrame({
      refId: target.refId,
      name: legend,
      meta: { type: step ? 'timeseries-multi' : 'numeric-multi' },
      fields: [
        { name: 'Time', type: FieldType.time, values: samples.map(([at]) => at * 1000), config: step ? { interval: step * 1000 } : {} },
        {
          name: 'Value',
          type: FieldType.number,
          labels,
          values: samples.map(([, value]) => number(value)),
          config: legend === undefined ? {} : { displayNameFromDS: legend },
        },
      ],
    });
  });
}

/** All series of one query as one table: time, a column per label, the value. */
export function tableFrame(result, target, several) {
  const names = [...new Set(result.flatMap(({ metric }) => Object.keys(metric)))].sort();
  const rows = result.flatMap(({ metric, values, value }) => (values ?? [value]).map((sample) => [metric, sample]));
  return createDataFrame({
    refId: target.refId,
    meta: { preferredVisualisationType: 'rawPrometheus' },
    fields: [
      { name: 'Time', type: FieldType.time, values: rows.map(([, [at]]) => at * 1000) },
      ...names.map((name) => ({
        name,
        type: name === 'le' ? FieldType.number : FieldType.string,
        values: rows.map(([metric]) => (name === 'le' ? number(metric.le ?? 'NaN') : (metric[name] ?? ''))),
        config: { filterable: true },
      })),
      { name: several ? `Value #${target.refId}` : 'Value', type: FieldType.number, values: rows.map(([, [, value]]) => number(value)) },
    ],
  });
}

/** Cumulative buckets as one frame with a field per bucket, each holding only its own part. */
export function bucketFrame(result, target, step) {
  const buckets = result.filter(({ metric }) => metric.le !== undefined).sort((a, b) => number(a.metric.le) - number(b.metric.le));
  const times = [...new Set(buckets.flatMap(({ values }) => values.map(([at]) => at)))].sort((a, b) => a - b);
  const columns = buckets.map(({ values }) => {
    const known = new Map(values.map(([at, value]) => [at, number(value)]));
    return times.map((at) => known.get(at) ?? 0);
  });
  return createDataFrame({
    refId: target.refId,
    meta: { type: 'heatmap-rows' },
    fields: [
      { name: 'Time', type: FieldType.time, values: times.map((at) => at * 1000), config: { interval: step * 1000 } },
      ...columns.map((column, i) => ({
        name: buckets[i].metric.le,
        type: FieldType.number,
        labels: { le: buckets[i].metric.le },
        values: column.map((value, t) => (i ? Math.max(0, value - columns[i - 1][t]) : value)),
      })),
    ],
  });
}
