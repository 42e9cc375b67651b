import { expect, test } from 'vitest';
import { makePlaces } from './places.ts';

test('the limit of places counts for each key, and freeing a place twice frees only one place', () => {
  const places = makePlaces(2);
  const [first, second] = [places.enter('a'), places.enter('a')];
  expect(second).toBeDefined();
  expect(places.enter('a')).toBeUndefined();
  expect(places.enter('b')).toBeDefined();
  first?.();
  first?.();
  expect(places.enter('a')).toBeDefined();
  expect(places.enter('a')).toBeUndefined();
});
