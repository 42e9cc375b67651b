import { parsePayloadFilter } from '@runyard/contract/automations/payload-filter/parse';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { evaluatePayloadFilter } from './evaluate.ts';
import { explainPayloadFilter } from './explain.ts';

const evaluate = (filter: unknown, body: unknown): string => {
  const parsed = parsePayloadFilter(filter);
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.faults));
  return evaluatePayloadFilter(parsed.filter, body);
};

describe('a payload filter', () => {
  test.each<[string, unknown, unknown, boolean]>([
    ['matches a field that has one of the listed values', { a: ['x', 'y'] }, { a: 'y' }, true],
    ['does not match a field with another value', { a: ['x'] }, { a: 'y' }, false],
    ['does not match a missing field', { a: ['x'] }, {}, false],
    ['distinguishes 1 from "1"', { a: [1] }, { a: '1' }, false],
    ['distinguishes true from "true"', { a: ['true'] }, { a: true }, false],
    ['distinguishes null from a missing field', { a: [null] }, {}, false],
    ['matches null', { a: [null] }, { a: null }, true],
    ['takes -0 and 0 as the same number', { a: [0] }, JSON.parse('{"a":-0}'), true],
    ['treats { in: [...] } like the list alone', { a: { in: ['x'] } }, { a: 'x' }, true],
    ['with `not_in` matches another value', { a: { not_in: ['x'] } }, { a: 'y' }, true],
    ['with `not_in` does not match a listed value', { a: { not_in: ['x'] } }, { a: 'x' }, false],
    ['with `not_in` matches a missing field', { a: { not_in: ['x'] } }, {}, true],
    ['counts null as present', { a: { exists: true } }, { a: null }, true],
    ['with `exists: false` matches a missing field', { a: { exists: false } }, {}, true],
    ['combines operators with AND', { a: { in: ['x', 'y'], not_in: ['y'] } }, { a: 'y' }, false],
    ['needs a match of every key', { a: ['x'], b: ['y'] }, { a: 'x', b: 'z' }, false],
    ['matches a nested field', { a: { b: { c: [1] } } }, { a: { b: { c: 1 } } }, true],
    ['with `in` does not match inside of a missing object', { a: { b: [1] } }, {}, false],
    ['with `not_in` matches inside of a missing object', { a: { b: { not_in: [1] } } }, {}, true],
    ['with `exists: false` matches inside of a text', { a: { b: { exists: false } } }, { a: 'text' }, true],
    ['with `exists: true` does not match inside of null', { a: { b: { exists: true } } }, { a: null }, false],
    ['with `in` matches if any element of the array is listed', { a: ['x'] }, { a: ['w', 'x'] }, true],
    ['with `in` does not match an empty array', { a: ['x'] }, { a: [] }, false],
    [
      'with `not_in` does not match if any element of the array is listed',
      { a: { not_in: ['x'] } },
      { a: ['w', 'x'] },
      false,
    ],
    ['with `not_in` matches an empty array', { a: { not_in: ['x'] } }, { a: [] }, true],
    ['does not look into arrays of arrays', { a: ['x'] }, { a: [['x']] }, false],
    [
      'does not combine several elements of an array to match a pattern',
      { a: { b: [1], c: [2] } },
      { a: [{ b: 1 }, { c: 2 }] },
      false,
    ],
    [
      'matches an array if one element matches the whole pattern',
      { a: { b: [1], c: [2] } },
      { a: [{}, { b: 1, c: 2 }] },
      true,
    ],
    ['with a nested pattern does not match an empty array', { a: { b: { exists: false } } }, { a: [] }, false],
    ['matches any object with the empty filter', {}, { a: 1 }, true],
    ['matches a scalar with the empty filter', {}, 7, true],
    ['matches no scalar with another filter', { a: { exists: false } }, 7, false],
    ['matches no array as body', { a: { exists: false } }, [], false],
    ['does not reach the prototype', { constructor: { exists: true } }, {}, false],
    ['reads an own member named __proto__', JSON.parse('{"__proto__":["x"]}'), JSON.parse('{"__proto__":"x"}'), true],
    ['does not take the prototype for a member', JSON.parse('{"__proto__":{"a":{"exists":true}}}'), {}, false],
    ['does not match a rounded number', { a: [9007199254740991] }, JSON.parse('{"a":9007199254740993}'), false],
    ['does not match Infinity', { a: [1] }, JSON.parse('{"a":1e999}'), false],
    ['uses the last of duplicate keys, as JSON.parse does', { a: [2] }, JSON.parse('{"a":1,"a":2}'), true],
  ])('%s', (_name, filter, body, matches) => {
    expect(evaluate(filter, body)).toBe(matches ? 'match' : 'no_match');
  });
});

/**
 * A second, slow evaluator, which was written only from the description of filters in the API. Its argument is a filter that is not parsed
 * yet.
 */
function naive(filter: unknown, body: unknown): boolean {
  if (Object.keys(filter as object).length === 0) return true;
  return isObject(body) && naivePattern(filter, body);
}
const isObject = (value: unknown): boolean => typeof value === 'object' && value !== null && !Array.isArray(value);
const naivePattern = (pattern: unknown, value: unknown): boolean =>
  Object.entries(pattern as object).every(([key, condition]) => {
    const isPresent = isObject(value) && Object.getOwnPropertyNames(value).includes(key);
    const field = isPresent ? (value as Record<string, unknown>)[key] : undefined;
    const equals = (allowed: unknown) =>
      (Array.isArray(field) ? field : [field]).some((each) => JSON.stringify(each) === JSON.stringify(allowed));
    if (Array.isArray(condition)) return isPresent && condition.some(equals);
    const names = Object.keys(condition);
    if (names.some((name) => !['in', 'not_in', 'exists'].includes(name)))
      return Array.isArray(field)
        ? field.some((each) => naivePattern(condition, each))
        : naivePattern(condition, field);
    return names.every((name) => {
      if (name === 'exists') return condition.exists === isPresent;
      const isListed = isPresent && condition[name].some(equals);
      return name === 'in' ? isListed : !isListed;
    });
  });

const key = fc.constantFrom('a', 'b', 'c', '__proto__', 'constructor', 'toString', 'length');
const scalar = fc.constantFrom<string | number | boolean | null>('x', 'y', '1', 1, 0, 1.5, true, false, null);
const values = fc.array(scalar, { minLength: 1, maxLength: 3 });
const asJson = <T>(arbitrary: fc.Arbitrary<T>) => arbitrary.map((value) => JSON.parse(JSON.stringify(value)));
/** Objects as JSON.parse makes them, with `__proto__` as an own member. */
const object = <T>(member: fc.Arbitrary<T>, minLength = 0) =>
  fc
    .uniqueArray(fc.tuple(key, member), { minLength, maxLength: 3, selector: ([name]) => name })
    .map((entries) => JSON.parse(`{${entries.map(([name, each]) => `"${name}":${JSON.stringify(each)}`).join()}}`));
const checks = fc
  .record({ in: values, not_in: values, exists: fc.boolean() }, { requiredKeys: [] })
  .filter((each) => Object.keys(each).length > 0);
const { filter } = fc.letrec((tie) => ({
  filter: object(fc.oneof({ depthSize: 'small' }, values, checks, tie('nested'))),
  nested: object(fc.oneof({ depthSize: 'small' }, values, checks, tie('nested')), 1),
}));
const { body } = fc.letrec((tie) => ({
  body: fc.oneof({ depthSize: 'small' }, scalar, object(tie('body')), fc.array(tie('body'), { maxLength: 3 })),
}));

test('the evaluator of payload filters decides as a slow second evaluator does, and the explanation agrees with the decision', () => {
  let matches = 0;
  fc.assert(
    fc.property(filter, asJson(body), (wanted, payload) => {
      const parsed = parsePayloadFilter(wanted);
      if (!parsed.ok) throw new Error(JSON.stringify(parsed.faults));
      const expected = naive(wanted, payload);
      if (expected) matches += 1;
      expect(evaluatePayloadFilter(parsed.filter, payload)).toBe(expected ? 'match' : 'no_match');
      const { would_trigger, checks: rows } = explainPayloadFilter(parsed.filter, payload);
      expect(would_trigger).toBe(expected);
      expect(rows.some(({ passed }) => !passed)).toBe(!expected);
    }),
    { numRuns: 3000, seed: 5 },
  );
  // Check that the random filters match often enough, so that both outcomes are tested.
  expect(matches).toBeGreaterThan(300);
});

describe('a hostile body', () => {
  test('with a huge array causes only limited work', () => {
    const conditions = Object.fromEntries(Array.from({ length: 98 }, (_, at) => [`k${at}`, { exists: false }]));
    const items = Array.from({ length: 87_000 }, () => ({}));
    const slow = { items: { ...conditions, last: ['x'] } };
    expect(evaluate(slow, { items })).toBe('too_much_work');
    const parsed = parsePayloadFilter(slow);
    const explained = parsed.ok && explainPayloadFilter(parsed.filter, { items });
    expect(explained).toMatchObject({ would_trigger: false, checks: [{ check: 'body', passed: false }] });
  });

  test('with as many elements as a delivery can have is still evaluated', () => {
    const items = Array.from({ length: 131_071 }, () => 0);
    expect(evaluate({ items: { in: [1, 2], not_in: [3] } }, { items })).toBe('no_match');
    expect(evaluate({ items: [7] }, { items: [...items, 7] })).toBe('match');
  });

  test('with deep nesting does not use the stack', () => {
    let deep: unknown = 'x';
    for (let level = 0; level < 100_000; level += 1) deep = { a: [deep] };
    expect(evaluate({ a: { a: { b: ['x'] } } }, deep)).toBe('no_match');
  });
});
