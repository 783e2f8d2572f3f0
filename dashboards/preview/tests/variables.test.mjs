import assert from 'node:assert/strict';
import { test } from 'node:test';
import { substituted, variablesOf } from '../src/variables.js';

const prometheus = { variable: async (query) => ({ 'label_values(a, service)': ['b', 'a.b', 'b'], 'label_values(c, none)': [] })[query] };
const range = {};
const of = async (list, given = {}) => variablesOf({ templating: { list } }, prometheus, range, given);
const query = (more) => ({ type: 'query', name: 'service', query: { query: 'label_values(a, service)' }, ...more });

test('a variable with one value takes the saved one while it is there, else the first', async () => {
  const saved = await of([query({ current: { value: 'b' } })]);
  const gone = await of([query({ current: { value: 'other' } })]);
  assert.equal(substituted('x="$service"', saved), 'x="b"');
  assert.equal(substituted('x="${service}" [[service]]', gone), 'x="a.b" a.b');
});

test('All stands for its own pattern where it has one, else for every value, escaped', async () => {
  const more = { multi: true, includeAll: true, current: { value: ['$__all'] } };
  assert.equal(substituted('x=~"$service"', await of([query({ ...more, allValue: '.*' })])), 'x=~".*"');
  assert.equal(substituted('x=~"$service"', await of([query(more)])), 'x=~"(a\\\\.b|b)"');
  assert.equal(substituted('${service:csv}', await of([query(more)])), 'a.b,b');
});

test('a value that is given wins', async () => {
  assert.equal(substituted('$service', await of([query({ multi: true })], { service: 'z' })), 'z');
});

test('a later variable sees an earlier one, and an unknown name stays', async () => {
  const list = [{ type: 'custom', name: 'word', query: 'service, other' }, query({ query: 'label_values(a, $word)' })];
  assert.equal(substituted('$service $nobody $__range', await of(list), { __range: '3600s' }), 'a.b $nobody 3600s');
});

test('a variable without values is empty', async () => {
  assert.equal(substituted('"$service"', await of([query({ query: 'label_values(c, none)' })])), '""');
});
