import { expect, test } from 'vitest';
import { differencesOf } from './waiting.ts';

test.each([
  ['nothing', { a: 1, b: { c: [1] } }, { b: { c: [1] }, a: 1 }, []],
  ['a member', { a: 1 }, { a: 2 }, [{ path: 'a', before: 1, after: 2 }]],
  [
    'a member that is new or gone',
    { a: 1 },
    { b: 2 },
    [
      { path: 'b', after: 2 },
      { path: 'a', before: 1 },
    ],
  ],
  [
    'a list as a whole',
    { a: { b: ['x'] } },
    { a: { b: ['x', 'y'] } },
    [{ path: 'a.b', before: ['x'], after: ['x', 'y'] }],
  ],
  [
    'items by name',
    { a: [{ name: 'x', p: 1 }] },
    { a: [{ name: 'x', p: 2 }] },
    [{ path: 'a.x.p', before: 1, after: 2 }],
  ],
  [
    'all members where there is no earlier content',
    undefined,
    { a: { b: 1 }, c: [2] },
    [
      { path: 'a.b', after: 1 },
      { path: 'c', after: [2] },
    ],
  ],
  ['null and nothing as the same', { a: null }, {}, []],
  ['an object that became a text', { a: { b: 1 } }, { a: 'b' }, [{ path: 'a', before: { b: 1 }, after: 'b' }]],
])('the comparison of two contents finds %s', (_, before, after, expected) => {
  expect(differencesOf(before, after)).toEqual(expected);
});
