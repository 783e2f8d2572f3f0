// Dashboard variables: their values, and texts with the values put in.
import { problem } from './problems.js';

const ALL = '$__all';
/** `$name`, `${name}`, `${name:format}`, `[[name]]`, as Grafana reads them. */
const REFERENCE = /\$(\w+)|\[\[(\w+?)(?::(\w+))?\]\]|\${(\w+)(?:\.[^:^}]+)?(?::([^}]+))?}/g;

const escaped = (value) => String(value).replace(/[\\^$.*+?()[\]{}|]/g, '\\\\$&');

/** One value as it stands in a query. Single values of single-valued variables stay as they are. */
function formatted(variable, format) {
  const { values } = variable;
  switch (format) {
    case 'raw':
    case 'text':
      return values.join(' + ');
    case 'csv':
      return values.join(',');
    case 'pipe':
      return values.join('|');
    case 'queryparam':
      return values.map((value) => `var-${variable.name}=${encodeURIComponent(value)}`).join('&');
    default:
      if (variable.pattern !== undefined) return variable.pattern;
      if (!variable.multi) return values[0] ?? '';
      return values.length === 1 ? escaped(values[0]) : `(${values.map(escaped).join('|')})`;
  }
}

/** A text with its variables put in; what is no variable stays. `more` holds plain texts by name. */
export function substituted(source, variables, more = {}) {
  return String(source ?? '').replace(REFERENCE, (match, bare, square, squareFormat, braced, format) => {
    const name = bare ?? square ?? braced;
    if (name in more) return more[name];
    const variable = variables[name];
    return variable ? formatted(variable, format ?? squareFormat) : match;
  });
}

/** The variables of a dashboard in its order, later ones seeing earlier ones. `given` are values by name. */
export async function variablesOf(dashboard, prometheus, range, given) {
  const found = {};
  for (const one of dashboard.templating?.list ?? []) {
    found[one.name] = { name: one.name, label: one.label || one.name, hide: one.hide ?? 0, ...(await valuesOf(one, found)) };
  }
  for (const name of Object.keys(given)) {
    if (!found[name]) problem('variables', `${name} was given a value and the dashboard has no such variable`);
  }
  return found;

  async function valuesOf(one, known) {
    const multi = Boolean(one.multi || one.includeAll);
    if (given[one.name] !== undefined) return { multi, values: given[one.name].split(',') };
    switch (one.type) {
      case 'datasource':
        return { multi: false, values: ['recording'] };
      case 'query':
        return chosen(one, multi, await answers(one, known));
      case 'custom':
      case 'interval':
      case 'constant':
      case 'textbox':
        return chosen(one, multi, texts(one, known));
      default:
        problem('variables', `${one.name} is of the type ${one.type}, which the preview does not know`);
        return { multi, values: [] };
    }
  }

  async function answers(one, known) {
    const query = substituted(typeof one.query === 'string' ? one.query : one.query?.query, known).trim();
    const values = await prometheus.variable(query, range);
    if (values === undefined) {
      problem('variables', `${one.name}: the preview does not understand the query ${query}`);
      return [];
    }
    const pattern = one.regex && new RegExp(one.regex.replace(/^\/|\/[a-z]*$/g, ''));
    const kept = pattern ? values.map((value) => value.match(pattern)).filter(Boolean).map((m) => m[1] ?? m[0]) : values;
    return [...new Set(kept)].sort((a, b) => a.localeCompare(b, 'en', { numeric: true }));
  }

  function texts(one, known) {
    const source = substituted(typeof one.query === 'string' ? one.query : '', known);
    return one.type === 'textbox' || one.type === 'constant' ? [source] : source.split(/\s*,\s*/).map((t) => t.split(' : ').pop());
  }
}

/** What Grafana shows when the dashboard is opened: the saved value if it is still there, else All or the first. */
function chosen(one, multi, options) {
  const saved = [one.current?.value ?? []].flat().map(String).filter((value) => value !== '');
  const kept = saved.filter((value) => options.includes(value));
  if (kept.length) return { multi, values: kept, options };
  if (one.includeAll && (saved.includes(ALL) || saved.length === 0)) {
    const pattern = one.allValue || undefined;
    return { multi, all: true, pattern, values: options, options };
  }
  return { multi, values: options.slice(0, 1), options };
}
