// What went wrong while a dashboard was drawn. `pictures.mjs` reads it from the page and fails when there is any.

export const state = { done: false, problems: [], panels: [] };
globalThis.__preview = state;

export function problem(where, what) {
  state.problems.push(`${where}: ${what}`);
}
