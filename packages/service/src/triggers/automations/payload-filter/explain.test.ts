import { parsePayloadFilter } from '@runyard/contract/automations/payload-filter/parse';
import { expect, test } from 'vitest';
import { explainPayloadFilter } from './explain.ts';

function explain(filter: unknown, body: unknown) {
  const parsed = parsePayloadFilter(filter);
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.faults));
  return explainPayloadFilter(parsed.filter, body);
}

test('the explanation of a filter shows for each condition the path, the check and the value that was found', () => {
  const filter = { event: ['deploy.finished'], env: { not_in: ['dev', 'staging'] }, data: { id: { exists: true } } };
  expect(explain(filter, { event: 'deploy.started', env: 'production', data: {} })).toEqual({
    would_trigger: false,
    checks: [
      {
        check: 'in',
        path: 'event',
        passed: false,
        reason: 'found "deploy.started"; allowed: "deploy.finished"',
      },
      { check: 'not_in', path: 'env', passed: true, reason: 'found "production"; not allowed: "dev", "staging"' },
      { check: 'exists', path: 'data.id', passed: false, reason: 'the field is missing; it must exist' },
    ],
  });
});

test('if no element of an array matches, the explanation shows the element that matches best', () => {
  const items = [{ type: 'a' }, { type: 'b', state: 'open' }, { type: 'c', state: 'closed' }];
  const { checks } = explain({ items: { type: ['b'], state: ['closed'] } }, { items });
  expect(checks).toEqual([
    {
      check: 'any_element',
      path: 'items',
      passed: false,
      reason: 'none of 3 elements matches the whole pattern; element 1 matches best',
    },
    { check: 'in', path: 'items[1].type', passed: true, reason: 'found "b"; allowed: "b"' },
    { check: 'in', path: 'items[1].state', passed: false, reason: 'found "open"; allowed: "closed"' },
  ]);
});

test('if an element of an array matches, the explanation shows this element', () => {
  const { would_trigger, checks } = explain({ items: { n: [2] } }, { items: [{ n: 1 }, { n: 2 }] });
  expect(would_trigger).toBe(true);
  expect(checks.map(({ path }) => path)).toEqual(['items', 'items[1].n']);
});

test('the explanation says if the filter is empty or the body is not an object', () => {
  expect(explain({}, 5)).toEqual({
    would_trigger: true,
    checks: [{ check: 'body', passed: true, reason: 'the filter is empty: it matches every body' }],
  });
  expect(explain({ a: ['x'] }, [1]).checks[0]?.reason).toContain('the body is an array of 1 (1)');
});

test('paths and reasons are short and well-formed Unicode, even for long names and values', () => {
  const long = '😀'.repeat(100_000);
  const name = 'k'.repeat(900);
  const values = Array.from({ length: 100 }, (_, at) => `${at}${'v'.repeat(900)}`);
  const { checks } = explain({ [name]: { [name]: { [name]: values } } }, { [name]: { [name]: { [name]: long } } });
  expect(checks).toHaveLength(1);
  expect(checks[0]?.path?.length).toBeLessThanOrEqual(300);
  expect(checks[0]?.reason.length).toBeLessThan(800);
  expect(checks[0]?.reason.isWellFormed()).toBe(true);
});

test('a path quotes a name that is not an identifier', () => {
  const { checks } = explain({ 'a.b': { 'c"d': ['x'] } }, {});
  expect(checks[0]?.path).toBe('["a.b"]["c\\"d"]');
});
