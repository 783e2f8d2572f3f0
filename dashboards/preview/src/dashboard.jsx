// A dashboard on its grid, and whether its panels were drawn.
import React from 'react';
import { Panel } from './panels/panel.jsx';
import { GAP, placed, rectangle, ROW_HEIGHT } from './grid.js';
import { problem, state } from './problems.js';
import { substituted } from './variables.js';

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
