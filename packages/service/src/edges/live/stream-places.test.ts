import { expect, test } from 'vitest';
import { makeStreamPlaces } from './stream-places.ts';

const key = (name: string, isOperator = false) => ({ keyId: name, teamId: name[0] ?? '', isOperator });

test('a key can open a quarter of the streams of a process and a team a half, and the operator can always open a stream', () => {
  const places = makeStreamPlaces(8, 1_000);
  const enter = (name: string, isOperator = false) => {
    const place = places.enter(key(name, isOperator));
    return typeof place === 'function' ? 'in' : place;
  };
  expect([enter('a1'), enter('a1'), enter('a1')]).toEqual(['in', 'in', { by: 'key', most: 2 }]);
  expect([enter('a2'), enter('a2'), enter('a3')]).toEqual(['in', 'in', { by: 'team', most: 4 }]);
  expect(['b1', 'b1', 'b2', 'b2', 'c1'].map((name) => enter(name))).toEqual([
    ...['in', 'in', 'in', 'in'],
    { by: 'process', most: 8 },
  ]);
  expect(enter('c1', true)).toBe('in');
});

test('a refused stream takes no place from other streams, and a second release of a place has no effect', () => {
  const places = makeStreamPlaces(4, 1_000);
  const leave = places.enter(key('a1'));
  expect(places.enter(key('a1'))).toEqual({ by: 'key', most: 1 });
  if (typeof leave !== 'function') throw new Error('no place');
  leave();
  leave();
  expect(places.enter(key('a1'))).toBeTypeOf('function');
  expect(places.enter(key('a1'))).toEqual({ by: 'key', most: 1 });
});

test('streams take at most half of the files that the process can open', () => {
  const places = makeStreamPlaces(10_000, 16);
  expect([places.enter(key('a1')), places.enter(key('a1')), places.enter(key('a1'))].at(-1)).toEqual({
    by: 'key',
    most: 2,
  });
});
