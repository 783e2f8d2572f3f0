// The data of one panel: its queries asked, turned into frames, transformed and configured.
import { cacheFieldDisplayNames } from '@grafana/data';
import { intervalsOf } from './interval.js';
import { bucketFrame, seriesFrames, tableFrame } from './frames.js';
import { configured, fieldConfigOf, transformed } from './fields.js';
import { branchesOf } from './branches.js';
import { problem } from './problems.js';
import { substituted } from './variables.js';

const DRAWN_BY_QUERY = new Set(['text', 'row', 'dashlist', 'news', 'alertlist']);

/** `{frames, fieldConfig, expressions}`; no frames where the panel asks nothing. */
export async function loaded(panel, { prometheus, range, variables, theme, timeZone }, width) {
  const fieldConfig = fieldConfigOf(panel);
  if (DRAWN_BY_QUERY.has(panel.type)) return { frames: [], fieldConfig, expressions: [] };
  const targets = (panel.targets ?? []).filter(({ hide, expr }) => !hide && expr);
  const tables = targets.filter(({ format }) => format === 'table').length;
  const expressions = [];
  const failed = [];
  const answers = await Promise.all(
    targets.map(async (target) => {
      const { step, variables: intervals } = intervalsOf(target, panel, range, width);
      const expression = substituted(target.expr, variables, intervals);
      expressions.push(expression);
      const legend = { ...target, legendFormat: substituted(target.legendFormat, variables, intervals) };
      const framed = (result, of) => {
        if (target.format === 'table') return result.length ? [tableFrame(result, legend, tables > 1)] : [];
        if (target.format === 'heatmap' && of) return result.length ? [bucketFrame(result, legend, of)] : [];
        return seriesFrames(result, legend, expression, of);
      };
      try {
        const frames = [];
        if (target.range || !target.instant) frames.push(...framed((await prometheus.range(expression, range, step)).result, step));
        if (target.instant) frames.push(...framed(vector(await prometheus.instant(expression, range)), 0));
        return frames;
      } catch (error) {
        failed.push(error.message);
        problem(panel.title, `query ${target.refId ?? ''} failed: ${error.message} in ${expression}`);
        return [];
      }
    })
  );
  const replace = (text, scoped) => substituted(text, variables, plain(scoped));
  const shaped = await transformed(answers.flat(), panel, replace);
  const frames = configured(shaped, fieldConfig, replace, theme, timeZone);
  cacheFieldDisplayNames(frames);
  return { frames, fieldConfig, expressions, replace, error: failed[0] };
}

/** A scalar has no labels; it is drawn as one series without any. */
function vector({ resultType, result }) {
  return resultType === 'scalar' ? [{ metric: {}, value: result }] : result;
}

function plain(scoped = {}) {
  const texts = {};
  for (const [name, one] of Object.entries(scoped)) if (typeof one?.text === 'string') texts[name] = one.text;
  const field = scoped.__dataContext?.value?.field;
  for (const [label, value] of Object.entries(field?.labels ?? {})) texts[`__field.labels.${label}`] = value;
  return texts;
}

/** Is there something to draw? Values that are all unknown are nothing. */
export function isEmpty(frames) {
  return !frames.some((frame) => frame.length && frame.fields.some((field) => field.type !== 'time' && field.values.some((v) => v !== null && v !== undefined)));
}

/**
 * The selectors of a panel that shows nothing, of expressions that should have given something since the recording holds
 * all that they select. `filters` lets expressions pass that keep only what meets a condition.
 */
export async function heldBy(expressions, { prometheus, range }, filters) {
  const held = new Set();
  for (const expression of expressions) {
    for (const { selectors, conditional } of branchesOf(expression)) {
      if (filters && conditional) continue;
      const found = await Promise.all(selectors.map((selector) => prometheus.holds(selector, range)));
      if (found.length && found.every(Boolean)) selectors.forEach((selector) => held.add(selector));
    }
  }
  return [...held];
}
