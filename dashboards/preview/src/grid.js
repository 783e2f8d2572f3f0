// Where panels stand: Grafana's grid of 24 columns, with collapsed rows closed or opened.

export const COLUMNS = 24;
export const ROW_HEIGHT = 30;
export const GAP = 8;

/**
 * The panels to draw with their places, and the height of the whole in rows. A collapsed row keeps its panels inside
 * itself; opened, they stand below it and push down what follows.
 */
export function placed(panels, open) {
  let pushed = 0;
  const places = [];
  for (const panel of [...panels].sort((a, b) => a.gridPos.y - b.gridPos.y || a.gridPos.x - b.gridPos.x)) {
    const at = (one, y) => ({ panel: one, x: one.gridPos.x, y, w: one.gridPos.w, h: one.gridPos.h });
    places.push(at(panel, panel.gridPos.y + pushed));
    const inside = panel.type === 'row' && panel.collapsed && open ? (panel.panels ?? []) : [];
    if (!inside.length) continue;
    const first = Math.min(...inside.map(({ gridPos }) => gridPos.y));
    const below = panel.gridPos.y + pushed + 1;
    for (const one of inside) places.push(at(one, below + one.gridPos.y - first));
    pushed += Math.max(...inside.map(({ gridPos }) => gridPos.y + gridPos.h)) - first;
  }
  return { places, rows: Math.max(0, ...places.map(({ y, h }) => y + h)) };
}

/** The rectangle of a place on a page of this width. */
export function rectangle({ x, y, w, h }, pageWidth) {
  const column = (pageWidth - GAP * (COLUMNS - 1)) / COLUMNS;
  return {
    left: Math.round(x * (column + GAP)),
    top: y * (ROW_HEIGHT + GAP),
    width: Math.round(w * column + (w - 1) * GAP),
    height: h * ROW_HEIGHT + (h - 1) * GAP,
  };
}
