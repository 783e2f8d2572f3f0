// Questions to the Prometheus behind this page, through the page's own server.

const LABEL_VALUES = /^label_values\(\s*(?:([\s\S]+?)\s*,\s*)?([a-zA-Z_]\w*)\s*\)$/;
const METRICS = /^metrics\(\s*(.+?)\s*\)$/;
const QUERY_RESULT = /^query_result\(([\s\S]+)\)$/;

export class Prometheus {
  constructor(address) {
    this.address = address;
  }

  async asked(path, parameters) {
    const answer = await fetch(this.address + path, { method: 'POST', body: new URLSearchParams(parameters) });
    const body = await answer.json();
    if (body.status !== 'success') throw new Error(body.error || `HTTP ${answer.status}`);
    return body.data;
  }

  /** Series with their samples on a grid of `step` seconds, which Grafana aligns to multiples of the step. */
  async range(query, range, step) {
    const aligned = (moment) => Math.floor(moment.valueOf() / 1000 / step) * step;
    return this.asked('/api/v1/query_range', { query, start: aligned(range.from), end: aligned(range.to), step });
  }

  async instant(query, range) {
    return this.asked('/api/v1/query', { query, time: range.to.valueOf() / 1000 });
  }

  /** The answers to the query of a variable, or undefined when it is of an unknown form. */
  async variable(query, range) {
    const bounds = { start: range.from.valueOf() / 1000, end: range.to.valueOf() / 1000 };
    let parts = query.match(LABEL_VALUES);
    if (parts) {
      const [, selector, label] = parts;
      if (!selector) return this.get(`/api/v1/label/${label}/values`, bounds);
      const series = await this.asked('/api/v1/series', { 'match[]': selector, ...bounds });
      return series.map((labels) => labels[label]).filter((value) => value !== undefined);
    }
    parts = query.match(METRICS);
    if (parts) {
      const names = await this.get('/api/v1/label/__name__/values', bounds);
      return names.filter((name) => new RegExp(parts[1]).test(name));
    }
    parts = query.match(QUERY_RESULT);
    if (parts) {
      const { result } = await this.instant(parts[1], range);
      return result.map(({ metric, value }) => `${selectorOf(metric)} ${value[1]} ${value[0] * 1000}`);
    }
    return undefined;
  }

  /** Does a selector find a series in the range? */
  async holds(selector, range) {
    const bounds = { start: range.from.valueOf() / 1000, end: range.to.valueOf() / 1000 };
    return (await this.asked('/api/v1/series', { 'match[]': selector, limit: 1, ...bounds })).length > 0;
  }

  async get(path, parameters) {
    const body = await (await fetch(`${this.address}${path}?${new URLSearchParams(parameters)}`)).json();
    if (body.status !== 'success') throw new Error(body.error);
    return body.data;
  }
}

/** A metric as a selector: `name{label="value"}`. */
export function selectorOf(metric) {
  const labels = Object.entries(metric).filter(([key]) => key !== '__name__');
  const inside = labels.map(([key, value]) => `${key}=${JSON.stringify(value)}`).join(', ');
  return (metric.__name__ ?? '') + (inside || !metric.__name__ ? `{${inside}}` : '');
}
