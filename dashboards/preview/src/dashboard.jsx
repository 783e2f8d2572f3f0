// A dashboard on its grid, and the line above it that says what this page is.
import React from 'react';
import { Panel } from './panels/panel.jsx';
import { GAP, placed, rectangle, ROW_HEIGHT } from './grid.js';
import { problem, state } from './problems.js';
import { substituted } from './variables.js';

const HIDDEN_VARIABLE = 2;

export function Dashboard({ dashboard, page, width, open, onDone }) {
  const { places, rows } = placed(dashboard.panels ?? [], open);
  const drawn = React.useRef(new Set());
  const wanted = places.filter(({ panel }) => panel.type !== 'row');
  const onDrawn = (panel) => {
    drawn.current.add(panel);
    if (drawn.current.size === wanted.length) onDone();
  };
  React.useEffect(() => {
    if (!wanted.length) {
      problem(dashboard.title, 'has no panels');
      onDone();
    }
  }, []);
  return (
    <div style={{ position: 'relative', width, height: rows * (ROW_HEIGHT + GAP) }}>
      {places.map((place) => {
        const { left, top, width: w, height: h } = rectangle(place, width);
        const { panel } = place;
        return (
          <div key={panel.id ?? `${place.x}-${place.y}`} data-panel={panel.id} style={{ position: 'absolute', left, top, width: w, height: h }}>
            {panel.type === 'row' ? <Row panel={panel} page={page} open={open} /> : <Panel panel={panel} page={page} width={w} height={h} onDrawn={onDrawn} />}
          </div>
        );
      })}
    </div>
  );
}

function Row({ panel, page, open }) {
  const closed = panel.collapsed && !open;
  return (
    <div style={{ fontSize: 16, fontWeight: 500, lineHeight: '30px' }}>
      <span style={{ display: 'inline-block', width: 18 }}>{closed ? '›' : '⌄'}</span>
      {substituted(panel.title, page.variables)}
      {closed && <span style={{ opacity: 0.6, fontWeight: 400, fontSize: 13 }}> ({panel.panels?.length ?? 0} panels)</span>}
    </div>
  );
}

export function Head({ dashboard, page, scenarios, dashboards, scenario, name, theme, go }) {
  const weak = { color: theme.colors.text.secondary };
  const box = { border: `1px solid ${theme.colors.border.medium}`, borderRadius: 4, padding: '3px 8px', fontSize: 13 };
  const select = { ...box, height: 28, lineHeight: '20px', background: theme.colors.background.primary, color: theme.colors.text.primary };
  const chooser = (key, value, options) => (
    <select aria-label={key} value={value} style={select} onChange={(event) => go({ [key]: event.target.value })}>
      {options.map((option) => (
        <option key={option}>{option}</option>
      ))}
    </select>
  );
  const clock = (at) => at.format('HH:mm');
  const names = [...new Map(page.annotations.map(({ name: of, color }) => [of, color]))];
  return (
    <>
      <div style={{ display: 'flex', gap: 12, alignItems: 'center', flexWrap: 'wrap', padding: '10px 0 6px' }}>
        <span style={{ fontSize: 18, fontWeight: 500 }}>{dashboard.title}</span>
        {chooser('dashboard', name, dashboards)}
        {chooser('scenario', scenario, scenarios)}
        <span style={weak}>
          {page.range.from.utc().format('YYYY-MM-DD')} {clock(page.range.from.utc())} to {clock(page.range.to.utc())} UTC
        </span>
        <span style={{ ...weak, marginLeft: 'auto', fontSize: 13 }}>Preview with Grafana&apos;s widgets on a recording, not Grafana: see dashboards/preview/README.md</span>
      </div>
      <div style={{ display: 'flex', gap: 8, alignItems: 'center', flexWrap: 'wrap', paddingBottom: 8 }}>
        {Object.values(page.variables)
          .filter(({ hide }) => hide !== HIDDEN_VARIABLE)
          .map((variable) => (
            <span key={variable.name} style={box}>
              <span style={weak}>{variable.label}</span> {variable.all ? 'All' : variable.values.join(' + ') || '(none)'}
            </span>
          ))}
        {(dashboard.annotations?.list ?? [])
          .filter(({ hide, builtIn }) => !hide && !builtIn)
          .map((one) => (
            <span key={one.name} style={{ ...weak, fontSize: 13 }}>
              <span style={{ color: theme.visualization.getColorByName(one.iconColor) }}>▍</span>
              {one.name}
              {names.some(([of]) => of === one.name) ? '' : ' (none)'}
            </span>
          ))}
        {(dashboard.links ?? []).map((link) => (
          <span key={link.title} style={{ ...box, marginLeft: 4 }}>
            {link.title || link.tags?.join(', ')} ↗
          </span>
        ))}
      </div>
    </>
  );
}

/** Notes canvases that were not drawn, two frames after the last panel. */
export function checkCanvases() {
  for (const { id, title, canvas } of state.panels) {
    if (!canvas) continue;
    const element = document.querySelector(`[data-panel="${id}"] canvas`);
    if (!element) problem(title, 'has no canvas');
    else if (!element.width || !element.height || isBlank(element)) problem(title, 'has an empty canvas');
  }
}

function isBlank(canvas) {
  const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
  return !data.some((value) => value !== 0);
}
