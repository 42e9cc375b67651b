import { parseExpression } from '@runyard/contract/schedules/cron-expression';
import { findTimeZone } from '@runyard/contract/wire/time-zone';
import { describe, expect, test } from 'vitest';
import { nextTimes } from './next-time.ts';

const iso = (ms: number) => new Date(ms).toISOString().replace(':00.000Z', 'Z');

function upcoming(text: string, after: string, { timezone = 'UTC', count = 3, anchor = after } = {}): string[] {
  const parsed = parseExpression(text);
  if (!parsed.ok) throw new Error(parsed.problem);
  const times = { expression: parsed.expression, timezone, anchorMs: Date.parse(anchor) };
  return nextTimes(times, Date.parse(after), count).map(iso);
}

const problemOf = (text: string): string => {
  const parsed = parseExpression(text);
  return parsed.ok ? '' : parsed.problem;
};

describe('an expression', () => {
  test('fires when the day of the month or the day of the week matches, if the expression restricts both', () => {
    expect(upcoming('0 0 13 * 5', '2026-11-10T00:00Z')).toEqual([
      '2026-11-13T00:00Z',
      '2026-11-20T00:00Z',
      '2026-11-27T00:00Z',
    ]);
  });

  test('skips a month that does not have the day, and fires in the next month that has it', () => {
    expect(upcoming('0 0 */5 * *', '2027-02-26T00:00Z')).toEqual([
      '2027-03-01T00:00Z',
      '2027-03-06T00:00Z',
      '2027-03-11T00:00Z',
    ]);
    expect(upcoming('0 0 1,31 * *', '2027-02-02T00:00Z', { count: 2 })).toEqual([
      '2027-03-01T00:00Z',
      '2027-03-31T00:00Z',
    ]);
  });

  test('accepts words, names, lists, ranges and steps', () => {
    expect(upcoming('@daily', '2026-11-10T05:00Z', { count: 1 })).toEqual(['2026-11-11T00:00Z']);
    expect(upcoming('@Hourly', '2026-11-10T05:00Z', { count: 1 })).toEqual(['2026-11-10T06:00Z']);
    expect(upcoming('@weekly', '2026-11-10T05:00Z', { count: 1 })).toEqual(['2026-11-15T00:00Z']);
    expect(upcoming('5,10-20/5 8 * JAN mon-fri', '2026-11-10T00:00Z')).toEqual([
      '2027-01-01T08:05Z',
      '2027-01-01T08:10Z',
      '2027-01-01T08:15Z',
    ]);
    expect(upcoming('0 0 29 2 *', '2096-03-01T00:00Z', { count: 1 })).toEqual(['2104-02-29T00:00Z']);
    expect(upcoming('  0   0 * * 7 ', '2026-11-10T00:00Z', { count: 1 })).toEqual(['2026-11-15T00:00Z']);
  });

  test('with @every counts the intervals from the anchor, so that a late fire does not delay later fires', () => {
    expect(upcoming('@every 1h30m', '2026-11-10T05:07Z', { anchor: '2026-11-10T00:00Z' })).toEqual([
      '2026-11-10T06:00Z',
      '2026-11-10T07:30Z',
      '2026-11-10T09:00Z',
    ]);
    expect(upcoming('@every 90m', '2026-11-10T00:00Z', { count: 1 })).toEqual(['2026-11-10T01:30Z']);
    expect(upcoming('@every 90m', '2026-11-09T00:00Z', { anchor: '2026-11-10T00:00Z', count: 1 })).toEqual([
      '2026-11-10T01:30Z',
    ]);
  });

  test.each([
    ['* * * *', /five fields/],
    ['0 0 0 * * *', /five fields.*not 6/],
    ['', /five fields/],
    ['60 * * * *', /minute: 60/],
    ['* 24 * * *', /hour: 24/],
    ['*/0 * * * *', /step/],
    ['* * * FOO *', /FOO/],
    ['? * * * *', /characters/],
    ['0 0 L * *', /names of three letters/],
    ['TZ=UTC 0 9 * * *', /timezone/],
    ['@reboot', /@daily/],
    ['@every 59s', /@every 1m/],
    ['@every 9999h', /@every 8784h/],
    ['@every', /duration/],
    ['@every -5m', /duration/],
    ['@every 1.5h', /duration/],
    ['@every 90', /duration/],
    ['0 0 31 2 *', /never fires/],
    ['0 0 30 2 *', /never fires/],
    ['0 0 31 4,6,9,11 *', /never fires/],
  ])('refuses %j', (text, problem) => {
    expect(problemOf(text)).toMatch(problem);
  });

  test('that is invalid is refused quickly, even if the text is long', () => {
    const hostile = [
      `${'1,'.repeat(90)} * * * *`,
      `${'*'.repeat(190)} * * * *`,
      `@every ${'1s'.repeat(90)}x`,
      `${'9'.repeat(180)} * * * *`,
      `1-${'9'.repeat(180)} * * * *`,
      '* * * * __proto__',
    ];
    const started = performance.now();
    for (const text of hostile) expect(problemOf(text)).not.toBe('');
    expect(performance.now() - started).toBeLessThan(20_000);
  });
});

describe('in a time zone', () => {
  const timezone = 'Europe/Berlin';

  test('an expression fires at the same local time in summer and winter', () => {
    expect(upcoming('0 9 1 * *', '2026-06-15T00:00Z', { timezone, count: 5 })).toEqual([
      '2026-07-01T07:00Z',
      '2026-08-01T07:00Z',
      '2026-09-01T07:00Z',
      '2026-10-01T07:00Z',
      '2026-11-01T08:00Z',
    ]);
  });

  test('an expression whose local time is skipped fires later, by the skipped duration', () => {
    expect(upcoming('30 2 * * *', '2026-03-28T12:00Z', { timezone })).toEqual([
      '2026-03-29T01:30Z',
      '2026-03-30T00:30Z',
      '2026-03-31T00:30Z',
    ]);
    // On this day clocks skip half an hour, so 02:15 becomes 02:45.
    expect(upcoming('15 2 * * *', '2026-10-03T00:00Z', { timezone: 'Australia/Lord_Howe', count: 2 })).toEqual([
      '2026-10-03T15:45Z',
      '2026-10-04T15:15Z',
    ]);
  });

  test('an expression fires once if its skipped local time moves to a time at which it fires anyway', () => {
    expect(upcoming('30 2,3 * * *', '2026-03-28T23:00Z', { timezone })).toEqual([
      '2026-03-29T01:30Z',
      '2026-03-30T00:30Z',
      '2026-03-30T01:30Z',
    ]);
    // The skipped time 02:45 becomes 03:45, which is after the time 03:15 of the same night.
    expect(upcoming('15,45 2-3 * * *', '2026-03-29T00:00Z', { timezone, count: 2 })).toEqual([
      '2026-03-29T01:15Z',
      '2026-03-29T01:45Z',
    ]);
  });

  test('an expression fires only at the first instant of a local time that occurs twice', () => {
    expect(upcoming('30 2 * * *', '2026-10-24T12:00Z', { timezone })).toEqual([
      '2026-10-25T00:30Z',
      '2026-10-26T01:30Z',
      '2026-10-27T01:30Z',
    ]);
    // Both searches start after the first 02:30: one before the hour is repeated, one in the repeated hour.
    expect(upcoming('30 2 * * *', '2026-10-25T00:45Z', { timezone, count: 1 })).toEqual(['2026-10-26T01:30Z']);
    expect(upcoming('30 2 * * *', '2026-10-25T01:15Z', { timezone, count: 1 })).toEqual(['2026-10-26T01:30Z']);
  });

  test('an expression without a fixed hour fires at the same intervals before and after clocks change', () => {
    expect(upcoming('*/30 * * * *', '2026-10-24T23:40Z', { timezone, count: 7 })).toEqual([
      '2026-10-25T00:00Z',
      '2026-10-25T00:30Z',
      '2026-10-25T01:00Z',
      '2026-10-25T01:30Z',
      '2026-10-25T02:00Z',
      '2026-10-25T02:30Z',
      '2026-10-25T03:00Z',
    ]);
    expect(upcoming('*/30 * * * *', '2026-03-29T00:20Z', { timezone, count: 4 })).toEqual([
      '2026-03-29T00:30Z',
      '2026-03-29T01:00Z',
      '2026-03-29T01:30Z',
      '2026-03-29T02:00Z',
    ]);
  });

  test.each(['Europe/Berlin', 'America/New_York', 'Australia/Lord_Howe', 'Asia/Kolkata'])(
    'an expression gives each time once and in order, also when clocks change in %s',
    (zone) => {
      for (const text of ['*/20 * * * *', '10 1,2,3 * * *', '0 */2 * * *', '45 2 * * 0']) {
        const found = upcoming(text, '2026-01-01T00:00Z', { timezone: zone, count: 250 });
        expect(found).toEqual([...new Set(found)].sort());
      }
    },
  );
});

test('a time zone is found only by its name', () => {
  expect(findTimeZone('Europe/Berlin')).toBe('Europe/Berlin');
  expect(findTimeZone('europe/berlin')).toBe('Europe/Berlin');
  expect(findTimeZone('UTC')).toBe('UTC');
  for (const name of ['Europe/Kyiv', 'Europe/Kiev', 'Asia/Kolkata', 'Asia/Calcutta', 'US/Pacific'])
    expect(findTimeZone(name), 'the name that was given').toBe(name);
  for (const name of ['Mars/Olympus', '+02:00', '', 'Local', '../etc/passwd']) expect(findTimeZone(name)).toBeNull();
});
