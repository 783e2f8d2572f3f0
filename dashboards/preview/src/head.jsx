// What stands above a dashboard: what this page is, what is shown, its variables, marks and links.
import React from 'react';

const HIDDEN_VARIABLE = 2;
const NOTICE =
  'A preview drawn with Grafana\u2019s published widgets on a recording of the demo. It is not Grafana: links, menus and zoom do ' +
  'nothing, and state timelines, heatmaps, bar charts and gauges are drawn by the preview.';

export function Head({ dashboard, page, scenarios, dashboards, scenario, name, theme, go }) {
  const weak = { color: theme.colors.text.secondary };
  const box = { border: `1px solid ${theme.colors.border.medium}`, borderRadius: 4, padding: '3px 8px', fontSize: 13 };
  const select = { ...box, height: 28, lineHeight: '20px', background: theme.colors.background.primary, color: theme.colors.text.primary };
  const row = { display: 'flex', gap: 8, alignItems: 'center', flexWrap: 'wrap', paddingBottom: 8 };
  const chooser = (key, value, options) => (
    <select aria-label={key} value={value} style={select} onChange={(event) => go({ [key]: event.target.value })}>
      {options.map((option) => (
        <option key={option}>{option}</option>
      ))}
    </select>
  );
  const [from, to] = [page.range.from, page.range.to].map((at) => at.clone().utc());
  const marks = (dashboard.annotations?.list ?? []).filter(({ hide, builtIn }) => !hide && !builtIn);
  const markState = (mark) => {
    if (mark.enable === false) return ' (off)';
    return page.annotations.some(({ name: of }) => of === mark.name) ? '' : ' (none)';
  };
  return (
    <>
      <div style={{ ...weak, fontSize: 12, padding: '6px 0' }}>{NOTICE}</div>
      <div style={row}>
        <span style={{ fontSize: 18, fontWeight: 500 }}>{dashboard.title}</span>
        {chooser('dashboard', name, dashboards)}
        {chooser('scenario', scenario, scenarios)}
        <span style={weak}>
          {from.format('YYYY-MM-DD HH:mm')} to {to.format('HH:mm')} UTC
        </span>
        {(dashboard.links ?? []).map((link) => (
          <span key={link.title} style={{ ...box, ...weak }}>
            {link.title || link.tags?.join(', ')} ↗
          </span>
        ))}
      </div>
      <div style={row}>
        {Object.values(page.variables)
          .filter(({ hide }) => hide !== HIDDEN_VARIABLE)
          .map((variable) => (
            <span key={variable.name} style={box}>
              <span style={weak}>{variable.label}</span> {variable.all ? 'All' : variable.values.join(' + ') || '(none)'}
            </span>
          ))}
        {marks.map((mark) => (
          <span key={mark.name} style={{ ...weak, fontSize: 12 }}>
            <span style={{ color: theme.visualization.getColorByName(mark.iconColor) }}>▍</span>
            {mark.name}
            {markState(mark)}
          </span>
        ))}
      </div>
    </>
  );
}
