import { parseIsoDuration } from '@runyard/contract/wire/iso-duration';
import { expect, test } from 'vitest';
import { formatDuration, formatUsd } from './amounts.ts';

test.each([
  [0.2, '<1 ms'],
  [12.4, '12 ms'],
  [1234, '1.2 s'],
  [59_400, '59 s'],
  [123_000, '2 min 3 s'],
  [3_900_000, '1 h 5 min'],
])('%d ms is written %s', (milliseconds, text) => expect(formatDuration(milliseconds)).toBe(text));

test.each([
  ['PT0S', 0],
  ['PT1M3.52S', 63_520],
  ['P1DT2H', 93_600_000],
  ['1 minute', undefined],
  ['PT', undefined],
])('the ISO duration %s has %s ms', (text, milliseconds) => expect(parseIsoDuration(text)).toBe(milliseconds));

test.each([
  [0, '$0'],
  [0.0042, '$0.0042'],
  [1.2, '$1.20'],
])('%d US dollars are written %s', (usd, text) => expect(formatUsd(usd)).toBe(text));
