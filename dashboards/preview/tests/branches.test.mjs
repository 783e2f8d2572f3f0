import assert from 'node:assert/strict';
import { test } from 'node:test';
import { branchesOf } from '../src/branches.js';

const one = (expression) => branchesOf(expression)[0];

test('every selector of an expression is found, with its matchers', () => {
  const expression = 'sum by (x) (rate(a{b="c"}[5m] offset 1h)) / on (x) group_left () {__name__="d:e"}';
  assert.deepEqual(one(expression).selectors, ['a{b="c"}', '{__name__="d:e"}']);
});

test('an expression that only computes should always give something', () => {
  for (const expression of ['a', 'a > bool 1', 'rate(a[5m]) / b', 'max by (x) (a) * 100', 'vector(1)', 'a{x!="1",y=~"2"}']) {
    assert.equal(one(expression).conditional, false, expression);
  }
});

test('an expression that keeps what meets a condition may give nothing', () => {
  for (const expression of ['a > 1', 'a == 0', 'a and b', 'a unless b', 'sum(a != 2)', 'absent(a)', 'label_replace(absent_over_time(a[1d]), "b", "c", "", "")', 'ALERTS{alertstate="firing"}']) {
    assert.equal(one(expression).conditional, true, expression);
  }
});

test('the sides of an outermost or are judged each by itself', () => {
  const found = branchesOf('(a > 1 or b) or c unless d');
  assert.deepEqual(found, [
    { selectors: ['a'], conditional: true },
    { selectors: ['b'], conditional: false },
    { selectors: ['c', 'd'], conditional: true },
  ]);
});
