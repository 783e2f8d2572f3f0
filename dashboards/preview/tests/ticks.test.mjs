import assert from 'node:assert/strict';
import { test } from 'node:test';
import { niceTicks } from '../src/ticks.js';

test('ticks are round, about as many as asked for, and reach the top', () => {
  assert.deepEqual(niceTicks(0, 8, 8), [0, 1, 2, 3, 4, 5, 6, 7, 8]);
  assert.deepEqual(niceTicks(0, 7.3, 4), [0, 2, 4, 6, 8]);
});

test('ticks of bytes are multiples of a power of two', () => {
  assert.deepEqual(niceTicks(0, 180 * 2 ** 30, 4, true), [0, 64, 128, 192].map((gib) => gib * 2 ** 30));
});
