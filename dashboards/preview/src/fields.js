// Field configuration: defaults and overrides of a panel, applied by Grafana's own code.
import {
  applyFieldOverrides,
  FieldConfigOptionsRegistry,
  standardTransformers,
  standardTransformersRegistry,
  transformDataFrame,
} from '@grafana/data';
import { firstValueFrom } from 'rxjs';
import { problem } from './problems.js';

const STANDARD = [
  'displayName', 'description', 'unit', 'min', 'max', 'fieldMinMax', 'decimals', 'noValue', 'color', 'thresholds', 'mappings',
  'links', 'actions', 'filterable',
];
const copied = (value) => (value === undefined ? undefined : structuredClone(value));

/** What Grafana's panels assume where a dashboard says nothing, by panel type. They are defined in Grafana, not in its packages. */
const CUSTOM_DEFAULTS = {
  timeseries: {
    drawStyle: 'line', lineInterpolation: 'linear', lineWidth: 1, fillOpacity: 0, gradientMode: 'none', showPoints: 'auto',
    pointSize: 5, spanNulls: false, stacking: { mode: 'none', group: 'A' }, axisPlacement: 'auto', axisColorMode: 'text',
    axisBorderShow: false, scaleDistribution: { type: 'linear' }, thresholdsStyle: { mode: 'off' },
    hideFrom: { tooltip: false, viz: false, legend: false }, barAlignment: 0,
  },
  'state-timeline': { lineWidth: 0, fillOpacity: 70, spanNulls: false, hideFrom: {} },
  table: { align: 'auto', cellOptions: { type: 'auto' }, inspect: false },
};
const COLOR_DEFAULTS = { timeseries: 'palette-classic', barchart: 'palette-classic' };
const THRESHOLDS = { mode: 'absolute', steps: [{ color: 'green', value: null }, { color: 'red', value: 80 }] };

/** An item per property that this panel sets: Grafana's code asks the registry what to do with each. */
function registryOf(fieldConfig) {
  const custom = new Set(Object.keys(fieldConfig.defaults.custom ?? {}));
  const ids = new Set(STANDARD);
  for (const { properties } of fieldConfig.overrides ?? []) for (const { id } of properties) ids.add(id);
  for (const id of custom) ids.add(`custom.${id}`);
  return new FieldConfigOptionsRegistry(() =>
    [...ids].map((id) => ({
      id,
      name: id,
      path: id.replace(/^custom\./, ''),
      isCustom: id.startsWith('custom.'),
      process: copied,
      // the label of an axis is the values': Grafana keeps it off the time axis, too
      shouldApply: ({ type }) => id !== 'custom.axisLabel' || type !== 'time',
    }))
  );
}

/** The panel's field configuration with Grafana's assumptions filled in. */
export function fieldConfigOf(panel) {
  const source = structuredClone(panel.fieldConfig ?? { defaults: {}, overrides: [] });
  const defaults = source.defaults ?? {};
  const custom = { ...CUSTOM_DEFAULTS[panel.type], ...defaults.custom };
  const thresholds = structuredClone(defaults.thresholds ?? THRESHOLDS);
  // JSON has no infinity: the base step of thresholds is written as null
  if (thresholds.steps[0]) thresholds.steps[0].value = -Infinity;
  for (const { properties } of source.overrides ?? []) {
    for (const { id, value } of properties) if (id === 'thresholds' && value?.steps?.[0]) value.steps[0].value = -Infinity;
  }
  const color = defaults.color ?? { mode: COLOR_DEFAULTS[panel.type] ?? 'thresholds' };
  return { defaults: { ...defaults, color, thresholds, custom }, overrides: source.overrides ?? [] };
}

/** Frames with display names, units, colours and the rest, ready to be drawn. */
export function configured(frames, fieldConfig, replaceVariables, theme, timeZone) {
  return applyFieldOverrides({
    data: frames,
    fieldConfig,
    fieldConfigRegistry: registryOf(fieldConfig),
    replaceVariables,
    theme,
    timeZone,
  });
}

export function registerTransformations() {
  standardTransformersRegistry.setInit(() =>
    Object.values(standardTransformers).filter((t, i, all) => all.findIndex(({ id }) => id === t.id) === i).map((t) => ({
      id: t.id,
      name: t.name,
      transformation: () => Promise.resolve(t),
      editor: () => null,
    }))
  );
}

/** The panel's transformations. One that runs only inside Grafana is a problem, since the table would look otherwise. */
export async function transformed(frames, panel, replaceVariables) {
  const wanted = (panel.transformations ?? []).filter(({ disabled }) => !disabled);
  for (const { id } of wanted) {
    if (!standardTransformersRegistry.getIfExists(id)) problem(panel.title, `the transformation ${id} runs only inside Grafana`);
  }
  if (!wanted.length) return frames;
  return firstValueFrom(transformDataFrame(wanted, frames, { interpolate: replaceVariables }));
}
