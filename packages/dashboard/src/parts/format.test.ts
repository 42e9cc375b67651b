import { afterEach, expect, test, vi } from 'vitest';
import { aboutOf } from './format.ts';

const zone = process.env.TZ;
afterEach(() => {
  if (zone === undefined) delete process.env.TZ;
  else process.env.TZ = zone;
});

/** Imports the module as in a browser of this time zone. The formats read the zone when the module is loaded. */
async function inZone(name: string): Promise<typeof import('./format.ts')> {
  process.env.TZ = name;
  vi.resetModules();
  return await import('./format.ts');
}

test.each([
  ['Europe/Berlin', '2026-11-28T09:03:05Z', '2026-11-28 10:03:05 CET (UTC+1)'],
  ['Europe/Berlin', '2026-07-01T22:00:00Z', '2026-07-02 00:00:00 CEST (UTC+2)'],
  ['Asia/Kolkata', '2026-11-28T09:03:05Z', '2026-11-28 14:33:05 UTC+5:30'],
  ['UTC', '2026-11-28T09:03:05Z', '2026-11-28 09:03:05 UTC'],
])('an exact time in %s has its day, its seconds and the offset of the zone', async (name, time, words) => {
  const { exactText } = await inZone(name);
  expect(exactText(Date.parse(time))).toBe(words);
});

test('a past time ends a sentence: now, some minutes ago, or on a day', async () => {
  const { pastText } = await inZone('UTC');
  const now = Date.parse('2026-11-28T10:00:00Z');
  const before = (ms: number) => pastText(now - ms, now);
  expect([before(3_000), before(26 * 60_000), before(9 * 86_400_000)]).toEqual(['now', '26 min ago', 'on 19 Nov 2026']);
});

test('the cost of requests without a price is not known, and a run without requests costs nothing', async () => {
  const { costText } = await inZone('UTC');
  expect([costText(undefined), costText({}), costText({ inference_cost_usd: 1.5 })]).toEqual([
    '$0.00',
    'not known',
    '$1.50',
  ]);
});

test('an estimate is never below the amount that is its beginning', () => {
  for (const usd of [0.4, 9.99, 12.4, 1200.01]) expect(aboutOf(usd)).toBeGreaterThanOrEqual(usd);
  expect([aboutOf(0.4), aboutOf(12.4)]).toEqual([0.4, 13]);
});
