// Draws the dashboards on the recordings: pictures for the docs, or a page for a person to look at.
import { existsSync, readdirSync } from 'node:fs';
import { join, relative, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { browser, chromiumPath, picture } from './pictures.mjs';
import { recordedScenarios, served } from './recordings.mjs';
import { pageServer } from './server.mjs';

const USAGE = `make preview PREVIEW_ARGS="…"
  --open               serve the page on 127.0.0.1 until Ctrl-C, and draw no pictures
  --port N             the port of that page, default 8765
  --dashboard A,B      only these dashboards
  --scenario A,B       these recordings instead of the three of each dashboard
  --width N            width of the pictures in pixels, default 1366
  --dashboards DIR     where the dashboards are, default dashboards
  --recordings DIR     where the recordings are, default tests/fixtures/recordings
  --out DIR            where the pictures go, default docs/images/dashboards
  --vars A=x;B=y,z     values of dashboard variables
  --rows               open collapsed rows in the pictures`;
/** Three scenarios for each dashboard: healthy, and the two that it should show best. */
const TELLING = {
  overview: ['steady', 'acceptance-drop', 'kv-pressure'],
  acceptance: ['steady', 'acceptance-drop', 'mix-shift'],
  memory: ['steady', 'kv-pressure', 'drafter-swapped'],
  startup: ['steady', 'cold-start-slow', 'restart'],
};
const PICTURES = ['steady', 'acceptance-drop', 'kv-pressure'];

class Wrong extends Error {}

function options() {
  const text = (value) => ({ type: 'string', default: value });
  const given = { open: { type: 'boolean' }, rows: { type: 'boolean' }, help: { type: 'boolean' }, port: text('8765'), width: text('1366') };
  for (const name of ['dashboard', 'scenario', 'vars', 'root']) given[name] = text('');
  given.dashboards = text('dashboards');
  given.recordings = text('tests/fixtures/recordings');
  given.out = text('docs/images/dashboards');
  try {
    return parseArgs({ options: given }).values;
  } catch (error) {
    throw new Wrong(`${error.message}\n${USAGE}`);
  }
}

const listed = (text) => text.split(',').filter(Boolean);

function known(wanted, all, what, folder) {
  for (const name of wanted) {
    if (!all.includes(name)) throw new Wrong(`no ${what} ${name} in ${folder}: there is ${all.join(', ') || 'none'}`);
  }
  return wanted;
}

/** Pairs of dashboard and scenario. */
function plan(given, dashboards, scenarios) {
  const chosen = known(listed(given.dashboard), dashboards, 'dashboard', given.dashboards);
  return (chosen.length ? chosen : dashboards).flatMap((dashboard) => {
    const wanted = listed(given.scenario).length ? listed(given.scenario) : (TELLING[dashboard] ?? PICTURES);
    return known(wanted, scenarios, 'recording', given.recordings).map((scenario) => ({ dashboard, scenario }));
  });
}

function addressOf(page, { dashboard, scenario }, given) {
  const query = new URLSearchParams({ dashboard, scenario });
  for (const one of given.vars.split(';').filter(Boolean)) {
    const [name, ...value] = one.split('=');
    query.set(`var-${name}`, value.join('='));
  }
  if (given.rows) query.set('open', '1');
  return `${page.address}/?${query}`;
}

async function draw(page, pairs, given, folders) {
  const executable = chromiumPath();
  if (!executable) throw new Wrong('no Chromium: apt-get install chromium, or name one in CHROMIUM');
  const chrome = await browser(executable);
  let bad = 0;
  for (const pair of pairs) {
    const file = join(folders.out, `${pair.dashboard}-${pair.scenario}.png`);
    const shown = await picture(chrome, addressOf(page, pair, given), { width: Number(given.width), file });
    // what a closed row hides is drawn and checked, too
    const opened = given.rows ? { problems: [], panels: shown.panels } : await picture(chrome, addressOf(page, pair, { ...given, rows: true }), { width: Number(given.width) });
    const problems = [...new Set([...shown.problems, ...opened.problems])];
    const empty = opened.panels.filter((panel) => panel.empty).map(({ title, said }) => (said ? `${title} ("${said}")` : title));
    console.log(`${relative(folders.root, file)}: ${opened.panels.length} panels, ${Math.round(shown.bytes / 1000)} kB, ${problems.length} problems`);
    if (empty.length) console.log(`  without data: ${empty.join(', ')}`);
    for (const one of problems) console.error(`  ${one}`);
    bad += problems.length;
  }
  await chrome.close();
  return bad;
}

function interrupted() {
  return new Promise((resolve) => ['SIGINT', 'SIGTERM'].forEach((signal) => process.once(signal, resolve)));
}

async function main() {
  const given = options();
  if (given.help) return console.log(USAGE);
  const root = resolve(given.root || '.');
  const folders = { root, dashboards: resolve(root, given.dashboards), recordings: resolve(root, given.recordings), out: resolve(root, given.out) };
  const files = existsSync(folders.dashboards) ? readdirSync(folders.dashboards).filter((name) => name.endsWith('.json')) : [];
  const dashboards = files.map((name) => name.slice(0, -'.json'.length)).sort();
  if (!dashboards.length) throw new Wrong(`no dashboards in ${given.dashboards}: make generate writes them`);
  const scenarios = recordedScenarios(folders.recordings);
  const pairs = plan(given, dashboards, scenarios);
  const needed = given.open && !given.scenario ? scenarios : [...new Set(pairs.map(({ scenario }) => scenario))];
  const tools = join(root, '.cache/prometheus/trixie/usr/bin');
  const recordings = {};
  let page;
  try {
    for (const scenario of needed) recordings[scenario] = await served(scenario, folders.recordings, join(root, '.cache/preview/recordings'), tools);
    const app = join(root, '.cache/preview/app');
    page = await pageServer({ app, folder: folders.dashboards, dashboards, recordings, port: given.open ? Number(given.port) : 0 });
    if (given.open) {
      console.log(`${addressOf(page, pairs[0], given)}   (Ctrl-C ends it)`);
      await interrupted();
    } else process.exitCode = (await draw(page, pairs, given, folders)) ? 1 : 0;
  } finally {
    await page?.end();
    await Promise.all(Object.values(recordings).map(({ end }) => end()));
  }
}

main().catch((error) => {
  console.error(`preview: ${error instanceof Wrong ? error.message : error.stack}`);
  process.exitCode = error instanceof Wrong ? 2 : 1;
});
