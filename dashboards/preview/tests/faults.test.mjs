// The built page, a real Prometheus and a real Chromium on dashboards with one fault each: every fault has to be noticed.
import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import { browser, chromiumPath, picture } from '../pictures.mjs';
import { served } from '../recordings.mjs';
import { pageServer } from '../server.mjs';

const app = dirname(dirname(fileURLToPath(import.meta.url)));
const START = 1_700_000_000;
const SAMPLES = 40;
const work = mkdtempSync(join(tmpdir(), 'preview-'));
const lines = ['a{x="1"}', 'b{x="2"}'].flatMap((series, k) =>
  Array.from({ length: SAMPLES }, (_, i) => `${series} ${(i % 7) + k} ${START + 15 * i}`)
);

const panel = (type, expr, more = {}) => ({
  id: 1, type, title: 'The panel', gridPos: { x: 0, y: 0, w: 24, h: 8 }, targets: [{ refId: 'A', expr, range: true }],
  fieldConfig: { defaults: {}, overrides: [] }, options: {}, ...more,
});
const said = { fieldConfig: { defaults: { noValue: 'nothing here' }, overrides: [] } };
const mapped = {
  fieldConfig: {
    defaults: { color: { mode: 'thresholds' }, mappings: [{ type: 'value', options: { 1: { text: 'one', color: 'red', index: 0 } } }] },
    overrides: [],
  },
};
const text = (content) => ({ options: { mode: 'html', content }, targets: [] });
const healthy = {
  timeseries: panel('timeseries', 'a'),
  stat: panel('stat', 'a'),
  'bar gauge': panel('bargauge', 'a'),
  gauge: panel('gauge', 'a'),
  table: panel('table', 'a', { targets: [{ refId: 'A', expr: 'a', instant: true, format: 'table' }] }),
  'state timeline': panel('state-timeline', 'a', { fieldConfig: { defaults: { color: { mode: 'fixed' } }, overrides: [] } }),
  'a filter that finds nothing': panel('timeseries', 'a > 1000', said),
  'a metric that was never recorded': panel('timeseries', 'c'),
};
const faulty = {
  'a query that does not parse': [panel('timeseries', 'rate(a)'), /query A failed/],
  'a join that matches nothing': [panel('timeseries', 'a + on (x) b', said), /shows "nothing here", and the recording holds a, b/],
  'a filter without a text for nothing': [panel('stat', 'a > 1000'), /shows "No data"/],
  'a type that is not known': [panel('nodeGraph', 'a'), /cannot draw a panel of the type nodeGraph/],
  'a transformation of Grafana alone': [panel('table', 'a', { transformations: [{ id: 'configFromData', options: {} }] }), /configFromData runs only inside/],
  'several tables without a merge': [panel('table', '{__name__=~"a|b"}'), /2 tables where one is shown/],
  'mappings that Grafana ignores': [panel('state-timeline', 'a', mapped), /ignores its value mappings/],
  'a widget that fails': [panel('stat', 'a', { options: { reduceOptions: { calcs: null } } }), /cannot be drawn|page:/],
  'a picture from elsewhere': [panel('text', '', text('<img src="https://elsewhere.invalid/x.png">')), /elsewhere\.invalid/],
  'a dashboard without panels': [undefined, /has no panels/],
};

let page, chrome, prometheus;

before(async () => {
  const tools = process.env.PROMETHEUS_TOOLS;
  writeFileSync(join(work, 'one.om.gz'), gzipSync([...lines, '# EOF', ''].join('\n')));
  prometheus = await served('one', work, join(work, 'blocks'), tools);
  const all = { ...healthy, ...Object.fromEntries(Object.entries(faulty).map(([name, [one]]) => [name, one])) };
  const folder = join(work, 'dashboards');
  mkdirSync(folder);
  const names = Object.entries(all).map(([name, one]) => {
    const file = name.replaceAll(' ', '-');
    writeFileSync(join(folder, `${file}.json`), JSON.stringify({ title: name, panels: one ? [one] : [] }));
    return file;
  });
  page = await pageServer({ app, folder, dashboards: names, recordings: { one: prometheus }, port: 0 });
  chrome = await browser(chromiumPath());
});

after(async () => {
  await chrome?.close();
  await page?.end();
  await prometheus?.end();
  rmSync(work, { recursive: true, force: true });
});

const drawn = (name) => picture(chrome, `${page.address}/?dashboard=${name.replaceAll(' ', '-')}&scenario=one`, { width: 800 });

for (const name of Object.keys(healthy)) {
  test(`no fault is found in: ${name}`, async () => assert.deepEqual((await drawn(name)).problems, []));
}
for (const [name, [, expected]] of Object.entries(faulty)) {
  test(`a fault is found in: ${name}`, async () => assert.match((await drawn(name)).problems.join('\n'), expected));
}
