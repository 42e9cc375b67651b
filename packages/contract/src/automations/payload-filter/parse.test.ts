import fc from 'fast-check';
import { expect, test } from 'vitest';
import { parsePayloadFilter } from './parse.ts';

const faultsOf = (value: unknown) => {
  const parsed = parsePayloadFilter(value);
  return parsed.ok ? [] : parsed.faults.map(({ path, reason }) => `${path}: ${reason}`);
};

test.each<[string, unknown, string]>([
  [
    'a scalar in place of the array',
    { a: 'x' },
    'a: must be an array of values or an object; to match one value, write ["x"]',
  ],
  [
    'null in place of the array',
    { a: null },
    'a: must be an array of values or an object; to match one value, write [null]',
  ],
  ['a scalar operand', { a: { in: 'x' } }, 'a.in: must be an array of values, such as ["x"]'],
  ['exists with a text', { a: { exists: 'true' } }, 'a.exists: must be true or false'],
  [
    'operators mixed with fields',
    { a: { in: ['x'], b: ['y'] } },
    'a.in: is an operator and cannot be mixed with fields; a filter cannot check a payload field named in',
  ],
  [
    'an operator without a field',
    { not_in: ['x'] },
    'not_in: is an operator, which belongs to a field; a filter cannot check a payload field named not_in',
  ],
  [
    'an empty object',
    { a: { b: {} } },
    'a.b: checks nothing: add values, operators or nested fields, or leave the key out',
  ],
  ['an empty list', { a: [] }, 'a: lists no value'],
  ['an object as value', { a: [{}] }, 'a[0]: must be a string, a number, true, false or null, not object'],
  ['an array as value', { a: [['x']] }, 'a[0]: must be a string, a number, true, false or null, not an array'],
  [
    'a rounded number',
    { a: [2 ** 53] },
    'a[0]: is a number that cannot be compared exactly: whole numbers go up to 9007199254740991',
  ],
  [
    'Infinity',
    JSON.parse('{"a":[1e999]}'),
    'a[0]: is a number that cannot be compared exactly: whole numbers go up to 9007199254740991',
  ],
  ['NUL in a key', { 'a\u0000': ['x'] }, '["a\\u0000"]: must not contain the NUL character (U+0000)'],
  ['a lone surrogate', { a: ['\ud800'] }, 'a[0]: must not contain half of a surrogate pair'],
  ['an array as filter', [], ': must be an object that mirrors the body, not an array'],
  ['null as filter', null, ': must be an object that mirrors the body, not null'],
  ['a long text', { a: ['x'.repeat(1001)] }, 'a[0]: must not be longer than 1000 characters'],
])('refuses the filter %s', (_name, value, fault) => {
  expect(faultsOf(value)).toEqual([fault]);
});

const nested = (levels: number): unknown => (levels === 0 ? ['x'] : { a: nested(levels - 1) });

test('the parser accepts a filter with at most 10 levels, 100 keys and 100 values', () => {
  expect(faultsOf(nested(10))).toEqual([]);
  expect(faultsOf(nested(11))).toEqual([expect.stringContaining('must not nest deeper than 10 levels')]);
  const wide = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, at) => [`k${at}`, ['x']]));
  expect(faultsOf({ a: wide(99) })).toEqual([]);
  expect(faultsOf({ a: wide(100) })).toEqual(['a: must not have more than 100 keys in total']);
  const list = (count: number) => ({ a: Array.from({ length: count }, (_, at) => at) });
  expect(faultsOf(list(100))).toEqual([]);
  expect(faultsOf(list(101))).toEqual(['a: must not list more than 100 values, and lists 101']);
});

test('the parser reports several faults of a filter at once, but at most 20', () => {
  expect(faultsOf({ a: 1, b: { exists: 1 } })).toHaveLength(2);
  expect(faultsOf(Object.fromEntries(Array.from({ length: 90 }, (_, at) => [`k${at}`, 1])))).toHaveLength(20);
});

test('the parser returns a compiled filter or a list of faults for any value, even if the value is deeply nested', () => {
  let deep: unknown = 'x';
  for (let level = 0; level < 100_000; level += 1) deep = { a: deep };
  expect(faultsOf(deep)).toHaveLength(1);
  fc.assert(
    fc.property(fc.json(), (text) => {
      const parsed = parsePayloadFilter(JSON.parse(text));
      expect(parsed.ok || parsed.faults.length > 0).toBe(true);
    }),
    { numRuns: 500 },
  );
});
