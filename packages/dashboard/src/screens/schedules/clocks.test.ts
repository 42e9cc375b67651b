import { expect, test } from 'vitest';
import { onTwoClocks } from './clocks.ts';

const daily = ['2026-10-24T07:00:00Z', '2026-10-25T08:00:00Z', '2026-10-26T08:00:00Z'];
const now = Date.parse('2026-10-23T12:00:00Z');

test('times are shown on the clock of the schedule and on that of the browser, with a note where a clock changes', () => {
  expect(onTwoClocks(daily, { zone: 'Europe/Berlin', hereZone: 'Asia/Kolkata', now })).toEqual([
    { time: daily[0], own: 'Sat 24 Oct, 09:00 CEST', here: 'Sat 24 Oct, 12:30 GMT+5:30' },
    {
      time: daily[1],
      own: 'Sun 25 Oct, 09:00 CET',
      here: 'Sun 25 Oct, 13:30 GMT+5:30',
      change: 'Clocks change in Europe/Berlin: from UTC+02:00 to UTC+01:00',
    },
    { time: daily[2], own: 'Mon 26 Oct, 09:00 CET', here: 'Mon 26 Oct, 13:30 GMT+5:30' },
  ]);
});

test('the second clock is left out while both show the same, and each clock that changes has a note', () => {
  const shown = onTwoClocks(daily, { zone: 'Europe/Berlin', hereZone: 'Europe/Paris', now });
  expect(shown.map(({ here }) => here)).toEqual([undefined, undefined, undefined]);
  const notes = onTwoClocks(daily, { zone: 'UTC', hereZone: 'Europe/Berlin', now }).map(({ change }) => change);
  expect(notes).toEqual([undefined, 'Clocks change in Europe/Berlin: from UTC+02:00 to UTC+01:00', undefined]);
  const zones = { zone: 'Europe/Berlin', hereZone: 'Europe/Paris', now: Date.parse('2026-10-25T07:00:00Z') };
  expect(onTwoClocks([daily[2] ?? ''], zones)[0]?.change).toBeUndefined();
});
