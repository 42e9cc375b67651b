import { describe, expect, test } from 'vitest';
import { turnsDuring } from '../../../test/turns.ts';
import { scanJson } from './scan-json.ts';

const bounds = { maxValues: 1000, maxDepth: 100 };
const scan = (text: string, more = {}) => scanJson(Buffer.from(text), { ...bounds, ...more });
const accepts = async (text: string) => (await scan(text)).kind === 'json';

const pieces = [
  '{',
  '}',
  '[',
  ']',
  ',',
  ':',
  '"',
  '"a"',
  '"\\u00e9"',
  '\\',
  ' ',
  '\n',
  '1',
  '-0.5e+3',
  '01',
  'true',
  'nul',
  'null',
  '\u0001',
  'é',
];

/** Numbers that only depend on `seed` (mulberry32). */
function numbers(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
}

function parses(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

describe('the JSON scanner', () => {
  test('accepts exactly the texts that JSON.parse accepts', async () => {
    const next = numbers(7);
    const pick = () => pieces[Math.floor(next() * pieces.length)];
    const valid = JSON.stringify({ a: [1, -2.5e-7, true, false, null, 'x\\"é🎉\u0001', {}, [], [[{ b: '' }]]], '': 0 });
    for (let n = 0; n < 20_000; n += 1) {
      const random = Array.from({ length: Math.ceil(next() * 8) }, pick).join('');
      const place = Math.floor(next() * valid.length);
      const changed = valid.slice(0, place) + pick() + valid.slice(place + Math.floor(next() * 3));
      for (const text of [random, changed]) expect(await accepts(text), text).toBe(parses(text));
    }
    expect(await accepts(valid)).toBe(true);
  });

  test('finds the members of the outermost object, and the last value if a name is repeated', async () => {
    const text = '{ "a" : [1,{"b":2}], "\\u0062":"x" ,"a": {"a":3} }';
    const scanned = await scan(text);
    if (scanned.kind !== 'json') throw new Error(scanned.kind);
    const found = [...(scanned.members ?? [])].map(([name, { start, end }]) => [name, text.slice(start, end)]);
    expect(found).toEqual([
      ['a', '{"a":3}'],
      ['b', '"x"'],
    ]);
    expect(await scan('[{"a":1}]')).toEqual({ kind: 'json', members: undefined });
  });

  test('counts values and levels exactly', async () => {
    expect((await scan('[1,[],{"a":"x"}]', { maxValues: 5 })).kind).toBe('json');
    expect((await scan('[1,[],{"a":"x"}]', { maxValues: 4 })).kind).toBe('too_many_values');
    expect((await scan('[[{}]]', { maxDepth: 3 })).kind).toBe('json');
    expect((await scan('[[{}]]', { maxDepth: 2 })).kind).toBe('too_deep');
  });

  test('lets other work run while it reads a large text, even if a slice of the text ends inside a character', async () => {
    const text = JSON.stringify({ a: Array(400_000).fill('é"\\🎉 and more of the same text') });
    const scanned = scan(text, { maxValues: 1_000_000 });
    expect(await turnsDuring(scanned)).toBeGreaterThan(text.length / 1024 / 1024);
    expect((await scanned).kind).toBe('json');
  });
});
