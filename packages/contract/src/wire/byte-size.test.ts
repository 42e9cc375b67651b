import { expect, test } from 'vitest';
import { formatBytes, overLimit } from './byte-size.ts';

test.each([
  [81, '81 B'],
  [3500, '3.4 KB'],
  [10 * 1024 ** 2, '10 MB'],
  [10.5 * 1024 ** 2, '10.5 MB'],
  [209_715_200, '200 MB'],
])('%d bytes are written %s', (bytes, text) => expect(formatBytes(bytes)).toBe(text));

test.each([
  [10.5 * 1024 ** 2, '10.5 MB; at most 10 MB'],
  [2 * 1024 ** 3, '2.0 GB; at most 10 MB'],
  [10 * 1024 ** 2 + 1, '10,485,761 bytes; at most 10,485,760 bytes (10 MB)'],
])('%d bytes over a limit of 10 MB are written %s', (bytes, text) =>
  expect(overLimit(bytes, 10 * 1024 ** 2)).toBe(text),
);
