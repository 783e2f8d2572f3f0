import assert from 'node:assert/strict';
import { test } from 'node:test';
import { placed, rectangle } from '../src/grid.js';

const at = (id, type, x, y, w, h, more = {}) => ({ id, type, gridPos: { x, y, w, h }, ...more });
const inside = [at(3, 'stat', 0, 2, 12, 4), at(4, 'stat', 12, 2, 12, 6)];
const panels = [at(1, 'stat', 0, 0, 24, 1), at(2, 'row', 0, 1, 24, 1, { collapsed: true, panels: inside }), at(5, 'stat', 0, 2, 24, 3)];
const tops = (places) => Object.fromEntries(places.map(({ panel, y }) => [panel.id, y]));

test('a closed row hides its panels and takes one line', () => {
  const { places, rows } = placed(panels, false);
  assert.deepEqual(tops(places), { 1: 0, 2: 1, 5: 2 });
  assert.equal(rows, 5);
});

test('an opened row shows its panels and pushes down what follows', () => {
  const { places, rows } = placed(panels, true);
  assert.deepEqual(tops(places), { 1: 0, 2: 1, 3: 2, 4: 2, 5: 8 });
  assert.equal(rows, 11);
});

test('the panels of a line fill the width of the page with one gap between them', () => {
  const [left, right] = [rectangle({ x: 0, y: 0, w: 12, h: 4 }, 1334), rectangle({ x: 12, y: 0, w: 12, h: 4 }, 1334)];
  assert.equal(left.left, 0);
  assert.equal(right.left - left.width, 8);
  assert.equal(right.left + right.width, 1334);
  assert.equal(left.height, 4 * 30 + 3 * 8);
});
