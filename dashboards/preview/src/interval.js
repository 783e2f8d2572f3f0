// The step of range queries and the interval variables, as Grafana's Prometheus data source computes them.
import { rangeUtil } from '@grafana/data';

/** The scrape interval that a data source has when none is configured, and that the recordings were made with. */
const SCRAPE_SECONDS = 15;
/** Prometheus answers at most 11,000 points; Grafana stays below it. */
const MOST_POINTS = 11000;

/** Seconds of a text as `30s` or `1m`; the scrape interval when there is none. */
function seconds(text) {
  return text ? rangeUtil.intervalToMs(text.replace(/^>/, '')) / 1000 : SCRAPE_SECONDS;
}

/** Step and interval variables of one query of a panel that is `width` pixels wide. */
export function intervalsOf(target, panel, range, width) {
  const lowest = seconds(target.interval || panel.interval);
  const points = panel.maxDataPoints || Math.max(1, Math.round(width));
  const grafana = rangeUtil.calculateInterval(range, points, `${lowest}s`).intervalMs / 1000;
  const span = (range.to.valueOf() - range.from.valueOf()) / 1000;
  const step = Math.max(grafana * (target.intervalFactor || 1), span / MOST_POINTS);
  return {
    step,
    variables: {
      __interval: text(grafana),
      __interval_ms: String(grafana * 1000),
      __rate_interval: text(Math.max(step + SCRAPE_SECONDS, 4 * SCRAPE_SECONDS)),
      __range: text(Math.round(span)),
      __range_s: String(Math.round(span)),
      __range_ms: String(Math.round(span * 1000)),
    },
  };
}

function text(value) {
  return Number.isInteger(value) ? `${value}s` : `${Math.round(value * 1000)}ms`;
}
