import { parsePayloadFilter } from '@runyard/contract/automations/payload-filter/parse';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  areRowsWhole,
  clashOf,
  conditions,
  type FilterRow,
  filterOf,
  readValue,
  rowsOf,
  withValue,
} from './filter-rows.ts';

test('a filter that is converted to rows and back stays the same', () => {
  const filter = {
    action: { in: ['opened', 'synchronize'] },
    pull_request: { draft: { not_in: [true] }, user: { login: { exists: true } } },
    number: { in: [1, '1'] },
  };
  expect(filterOf(rowsOf(filter))).toEqual(filter);
});

test('a plain list becomes a row with the condition that the value is in the list', () => {
  expect(rowsOf({ status: ['firing'] })).toEqual([{ path: 'status', condition: 'in', values: ['firing'] }]);
});

test('the parser of the service accepts every filter that rows are converted to', () => {
  const name = fc.stringMatching(/^[a-z]{1,4}$/).filter((word) => word !== 'in');
  const row: fc.Arbitrary<FilterRow> = fc.record({
    path: fc.array(name, { minLength: 1, maxLength: 3 }).map((names) => names.join('.')),
    condition: fc.constantFrom(...conditions),
    values: fc.array(fc.oneof(fc.string({ maxLength: 5 }), fc.integer(), fc.boolean()), { minLength: 1, maxLength: 3 }),
  });
  fc.assert(
    fc.property(
      fc.uniqueArray(row, { selector: ({ path }) => path.split('.')[0], minLength: 1, maxLength: 4 }),
      (rows) => {
        expect(parsePayloadFilter(filterOf(rows)).ok).toBe(true);
      },
    ),
    { numRuns: 50 },
  );
});

test('the input of a person becomes a number, a boolean or null if it looks like one, and otherwise a text', () => {
  expect(['1', '"1"', 'true', 'null', 'main', '1.5'].map(readValue)).toEqual([1, '1', true, null, 'main', 1.5]);
});

test.each([
  [undefined, true],
  [{ status: ['firing'] }, true],
  [{ b: { not_in: [1], in: [2] }, a: { c: ['x'] } }, true],
  [{ 'a.b': ['x'] }, false],
  [{ a: { in: ['x'], c: ['y'] } }, false],
])('areRowsWhole returns whether rows can show the whole filter %j', (filter, isWhole) => {
  expect(areRowsWhole(filter)).toBe(isWhole);
});

test('rows with the same field and condition are joined, and of two contradicting rows only the earlier row counts', () => {
  const rows: FilterRow[] = [
    { path: 'a.b', condition: 'in', values: ['x'] },
    { path: 'a.b', condition: 'in', values: ['y', 'x'] },
    { path: 'c', condition: 'exists', values: [] },
    { path: 'c', condition: 'missing', values: [] },
    { path: 'a.b', condition: 'not_in', values: ['z'] },
  ];
  expect(filterOf(rows)).toEqual({ a: { b: { in: ['x', 'y'], not_in: ['z'] } }, c: { exists: true } });
  expect(rows.map((_, index) => clashOf(rows, index))).toEqual([undefined, 'joined', undefined, 'ignored', undefined]);
});

test('a value of a payload becomes a condition of its field, and a second value joins the condition', () => {
  const first = withValue([], 'items[2].state', 'open');
  expect(first).toEqual([{ path: 'items.state', condition: 'in', values: ['open'] }]);
  expect(withValue(first, 'items[0].state', 'new')).toEqual([
    { path: 'items.state', condition: 'in', values: ['open', 'new'] },
  ]);
  expect(withValue(first, 'items[0].state', 'open')).toBe(first);
  expect(withValue(first, '["a b"]', 1)).toBe(first);
  expect(withValue(first, 'items', {})).toBe(first);
});
