import { expect, test } from 'vitest';
import { makePlaces } from './places.ts';

test('each key has its own places, and each place is freed only once', () => {
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
