// The page: reads what to show from its address, and shows it.
import React from 'react';
import { createRoot } from 'react-dom/client';
import { createTheme, dateTime, ThemeContext } from '@grafana/data';
import { GlobalStyles } from '@grafana/ui';
import { annotationsOf } from './annotations.js';
import { checkCanvases, Dashboard } from './dashboard.jsx';
import { registerTransformations } from './fields.js';
import { Head } from './head.jsx';
import { problem, state } from './problems.js';
import { Prometheus } from './prometheus.js';
import { variablesOf } from './variables.js';

const MARGIN = 16;
/** A picture is taken once nothing has changed for this long: fonts, icons, sparklines and tables come late. */
const SETTLED_MS = 600;
const TYPEFACES = ['400 14px Inter', '500 14px Inter', '400 14px "Roboto Mono"'];

const parameters = new URLSearchParams(location.search);
const given = Object.fromEntries([...parameters].filter(([key]) => key.startsWith('var-')).map(([key, value]) => [key.slice(4), value]));

function go(change) {
  const next = new URLSearchParams(location.search);
  for (const [key, value] of Object.entries(change)) next.set(key, value);
  location.search = next;
}

/** Resolves once the page has not changed for a while. */
async function settled() {
  await document.fonts.ready;
  await new Promise((resolve) => {
    const calm = () => {
      changes.disconnect();
      resolve();
    };
    let timer = setTimeout(calm, SETTLED_MS);
    const changes = new MutationObserver(() => {
      clearTimeout(timer);
      timer = setTimeout(calm, SETTLED_MS);
    });
    changes.observe(document.body, { subtree: true, childList: true, attributes: true });
  });
}

/** Widgets measure their texts as soon as they are drawn, so the typefaces have to be there before. */
async function typefaces(theme) {
  const place = document.body.appendChild(document.createElement('div'));
  await new Promise((resolve) => {
    const Drawn = () => {
      React.useEffect(resolve, []);
      return <GlobalStyles />;
    };
    createRoot(place).render(<ThemeContext.Provider value={theme}><Drawn /></ThemeContext.Provider>);
  });
  const found = await Promise.all(TYPEFACES.map((face) => document.fonts.load(face)));
  TYPEFACES.forEach((face, i) => found[i].length || problem('page', `the typeface ${face} is missing`));
}

async function start() {
  const has = await (await fetch('/contents.json')).json();
  const scenarios = Object.keys(has.scenarios);
  const name = parameters.get('dashboard') ?? has.dashboards[0];
  const scenario = parameters.get('scenario') ?? scenarios[0];
  const recorded = has.scenarios[scenario];
  if (!has.dashboards.includes(name) || !recorded) throw new Error(`there is no dashboard ${name} or no recording ${scenario}`);
  const dashboard = await (await fetch(`/dashboards/${name}.json`)).json();
  const theme = createTheme({ colors: { mode: parameters.get('theme') ?? 'dark' } });
  await typefaces(theme);
  const [from, to] = [dateTime(recorded.from * 1000), dateTime(recorded.to * 1000)];
  const range = { from, to, raw: { from, to } };
  const prometheus = new Prometheus(`/prometheus/${scenario}`);
  const variables = await variablesOf(dashboard, prometheus, range, given);
  const annotations = await annotationsOf(dashboard, prometheus, range, variables);
  const page = { prometheus, range, variables, annotations, theme, timeZone: 'utc' };
  const width = document.documentElement.clientWidth - 2 * MARGIN;
  const done = () =>
    settled().then(() => {
      checkCanvases();
      state.done = true;
    });
  document.body.style.margin = 0;
  createRoot(document.getElementById('root')).render(
    <ThemeContext.Provider value={theme}>
      <div style={{ padding: `0 ${MARGIN}px ${MARGIN}px`, background: theme.colors.background.canvas, color: theme.colors.text.primary }}>
        <Head {...{ dashboard, page, scenarios, dashboards: has.dashboards, scenario, name, theme, go }} />
        <Dashboard dashboard={dashboard} page={page} width={width} open={parameters.has('open')} onDone={done} />
      </div>
    </ThemeContext.Provider>
  );
}

state.settled = settled;
registerTransformations();
start().catch((error) => {
  problem('page', error.stack);
  document.body.append(Object.assign(document.createElement('pre'), { textContent: String(error) }));
  state.done = true;
});
