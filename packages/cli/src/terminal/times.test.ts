import { expect, test } from 'vitest';
import { formatAgo } from './times.ts';

const now = Date.parse('2026-11-22T12:00:00Z');
test.each([
  ['2026-11-22T12:00:00Z', 'now'],
  ['2026-11-22T12:00:03Z', 'now'],
  ['2026-11-22T11:59:48.9Z', '11 s ago'],
  ['2026-11-22T11:57:00Z', '3 min ago'],
  ['2026-11-22T11:00:01Z', '59 min ago'],
  ['2026-11-22T07:00:00Z', '5 h ago'],
  ['2026-11-20T12:00:00Z', '2 d ago'],
  ['2026-10-01T12:00:00Z', '2026-10-01'],
  ['2027-01-01T00:00:00Z', '2027-01-01'],
])('formatAgo describes %s as %s', (time, expected) => expect(formatAgo(time, now)).toBe(expected));
