// Annotations by Prometheus queries: where a query gives a value above 0, from its first to its last sample.
import { substituted } from './variables.js';
import { problem } from './problems.js';
import { intervalsOf } from './interval.js';
import { rangeUtil } from '@grafana/data';

/** All annotations of a dashboard: `{from, to, color, text}` in milliseconds. */
export async function annotationsOf(dashboard, prometheus, range, variables) {
  const found = [];
  for (const one of dashboard.annotations?.list ?? []) {
    const expression = one.expr ?? one.target?.expr;
    if (one.enable === false || !expression) continue;
    const { variables: intervals } = intervalsOf({}, {}, range, 1000);
    const step = one.step ? rangeUtil.intervalToMs(one.step) / 1000 : 60;
    try {
      const { result } = await prometheus.range(substituted(expression, variables, intervals), range, step);
      for (const { metric, values } of result) {
        const text = (format) => (format ?? '').replace(/\{\{\s*(\w+)\s*\}\}/g, (_, label) => metric[label] ?? '');
        const label = [text(one.titleFormat), text(one.textFormat)].filter(Boolean).join(': ') || one.name;
        const when = one.useValueForTime ? moments(values, range) : spans(values, step);
        for (const { from, to } of when) found.push({ from, to, color: one.iconColor || 'red', text: label, name: one.name });
      }
    } catch (error) {
      problem(`annotation ${one.name}`, String(error.message));
    }
  }
  return found;
}

function spans(values, step) {
  const all = [];
  let open;
  for (const [at, value] of values) {
    if (!(Number(value) > 0)) open = undefined;
    else if (open && at * 1000 - open.to <= step * 1000) open.to = at * 1000;
    else {
      open = { from: at * 1000, to: at * 1000 };
      all.push(open);
    }
  }
  return all;
}

/** Where the values are themselves moments, in milliseconds. */
function moments(values, range) {
  const all = [...new Set(values.map(([, value]) => Number(value)))];
  return all.filter((at) => at >= range.from.valueOf() && at <= range.to.valueOf()).map((at) => ({ from: at, to: at }));
}
