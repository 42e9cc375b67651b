/** Compares the next times of random cron expressions with the results of a simple search, which checks each minute. */
import { parseExpression } from '@runyard/contract/schedules/cron-expression';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { nextTime, type Times } from './next-time.ts';
import { offsetAt } from './time-zone.ts';

const minuteMs = 60_000;

/** A field of a cron expression as text, and the values that it selects. */
interface Field {
  readonly text: string;
  readonly values: ReadonlySet<number>;
}

const range = (from: number, to: number, step = 1) =>
  Array.from({ length: Math.floor((to - from) / step) + 1 }, (_, index) => from + index * step);

/** Makes random fields with values from `min` to `max`: all values, steps, and lists of values and ranges. */
function fieldOf(min: number, max: number): fc.Arbitrary<Field> {
  const value = fc.integer({ min, max });
  const step = fc.integer({ min: 1, max: Math.ceil((max - min) / 2) });
  const part = fc.oneof(
    value.map((n) => ({ text: `${n}`, values: [n] })),
    fc.tuple(value, value, step).map(([a, b, by]) => {
      const [from, to] = [Math.min(a, b), Math.max(a, b)];
      return { text: `${from}-${to}/${by}`, values: range(from, to, by) };
    }),
  );
  return fc.oneof(
    fc.constant({ text: '*', values: new Set(range(min, max)) }),
    step.map((by) => ({ text: `*/${by}`, values: new Set(range(min, max, by)) })),
    fc.array(part, { minLength: 1, maxLength: 3 }).map((parts) => ({
      text: parts.map(({ text }) => text).join(','),
      values: new Set(parts.flatMap(({ values }) => values)),
    })),
  );
}

const everyDay = { text: '*', values: new Set(range(0, 31)) };
/** Makes the two day fields so that at least one of them is `*`. If both were restricted, a day would match if it matches only one of them. */
const days = fc.oneof(
  fc.constant([everyDay, everyDay] as const),
  fieldOf(1, 31).map((field) => [field, everyDay] as const),
  fieldOf(0, 6).map((field) => [everyDay, field] as const),
);
const patterns = fc.tuple(fieldOf(0, 59), fieldOf(0, 23), days).map(([minute, hour, [day, weekday]]) => ({
  text: `${minute.text} ${hour.text} ${day.text} * ${weekday.text}`,
  matches: (local: number) => {
    const date = new Date(local);
    return (
      minute.values.has(date.getUTCMinutes()) &&
      hour.values.has(date.getUTCHours()) &&
      day.values.has(date.getUTCDate()) &&
      weekday.values.has(date.getUTCDay())
    );
  },
}));
const instants = fc.integer({ min: Date.parse('2024-01-01T00:00Z'), max: Date.parse('2031-01-01T00:00Z') });
const zones = fc.constantFrom(
  'Europe/Berlin',
  'America/New_York',
  'Australia/Lord_Howe',
  'Asia/Kolkata',
  'America/Sao_Paulo',
);

function timesOf(text: string, timezone: string): Times {
  const parsed = parseExpression(text);
  if (!parsed.ok) throw new Error(`${text} ${parsed.problem}`);
  return { expression: parsed.expression, timezone, anchorMs: 0 };
}

test('in UTC, the next time is the first minute that matches the fields', () => {
  fc.assert(
    fc.property(patterns, instants, ({ text, matches }, after) => {
      let minute = Math.floor(after / minuteMs) * minuteMs + minuteMs;
      while (!matches(minute)) minute += minuteMs;
      expect(nextTime(timesOf(text, 'UTC'), after)).toBe(minute);
    }),
    { numRuns: 80 },
  );
});

test('in a time zone, the local time of the next time matches, or was moved because clocks skip a matching local time', () => {
  fc.assert(
    fc.property(
      patterns,
      zones,
      instants,
      fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
      (pattern, timezone, after, part) => {
        const times = timesOf(pattern.text, timezone);
        const next = nextTime(times, after) ?? Number.NaN;
        expect(next).toBeGreaterThan(after);
        expect(nextTime(times, after + Math.floor((next - after) * part))).toBe(next);
        const local = next + offsetAt(timezone, next);
        // In these zones, clocks skip at most one hour.
        const isAfterChange = offsetAt(timezone, next) > offsetAt(timezone, next - 3 * 3_600_000);
        if (!isAfterChange) expect(pattern.matches(local)).toBe(true);
        else expect([0, 30, 60].some((skipped) => pattern.matches(local - skipped * minuteMs))).toBe(true);
      },
    ),
    { numRuns: 80 },
  );
});

test('any text is either a valid expression with a next time, or refused with a reason', () => {
  const field = fc.oneof(
    fc.constantFrom('*', '0', '5', '1-5', '*/5', 'JAN', 'MON', '31'),
    fc.string({ unit: fc.constantFrom(...'0123456789*,-/'), minLength: 1, maxLength: 4 }),
  );
  const cronLike = fc.array(field, { minLength: 4, maxLength: 6 }).map((fields) => fields.join(' '));
  const interval = fc.array(fc.tuple(fc.nat(2000), fc.constantFrom('h', 'm', 's', 'd')), { maxLength: 3 });
  const every = interval.map((parts) => `@every ${parts.map((part) => part.join('')).join('')}`);
  fc.assert(
    fc.property(fc.oneof(cronLike, every, fc.string()), instants, (text, after) => {
      const parsed = parseExpression(text);
      if (!parsed.ok) expect(parsed.problem).not.toBe('');
      else
        expect(nextTime({ expression: parsed.expression, timezone: 'UTC', anchorMs: after }, after)).toBeGreaterThan(
          after,
        );
    }),
    { numRuns: 150 },
  );
});
