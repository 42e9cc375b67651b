import { expect, test } from 'vitest';
import { readQuery } from './query.ts';

const run = '019a1c52-7d1e-7c3a-9b60-4f1f0e6d2a10';
const factory = 'p5Rk9YvB2nXsL8dTqJ4hWc';
const automation = 'Hw4Cx2LsN7bVq9TzJ6kRyD';

test.each([
  ['two words', '  refund   audit ', 'refund audit', []],
  ['the id of a run', run.toUpperCase(), '', [run]],
  ['a word that may be a UID', factory, factory, [factory]],
  ['the address of a run', `https://runyard.example/runs/${run}?tab=files#step`, '', [run]],
  ['a path with two ids', `/factories/${factory}/automations/${automation}`, '', [automation, factory]],
  ['an address without a path', 'https://runyard.example', 'https://runyard.example', []],
  ['an address without ids', 'https://runyard.example/runs', '', []],
  ['a slash between words', 'a/b c', 'a/b c', []],
  ['many words', 'a '.repeat(40), 'a a a a a a a a a a', []],
  ['many ids', `/${run}`.repeat(40), '', [run, run, run, run, run]],
])('reads %s', (_, q, text, ids) => {
  expect(readQuery(q)).toEqual({ text, ids });
});
