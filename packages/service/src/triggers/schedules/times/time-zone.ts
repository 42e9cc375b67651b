/** Local times of IANA time zones. A local time is the number of milliseconds that UTC would have at the same clock reading. */

const formats = new Map<string, Intl.DateTimeFormat>();

function formatOf(timeZone: string): Intl.DateTimeFormat {
  const known = formats.get(timeZone);
  if (known) return known;
  const made = new Intl.DateTimeFormat('en-US', {
    timeZone,
    calendar: 'iso8601',
    hourCycle: 'h23',
    year: 'numeric',
    month: 'numeric',
    day: 'numeric',
    hour: 'numeric',
    minute: 'numeric',
    second: 'numeric',
  });
  // There are a few hundred zones, so the size of the map is limited.
  formats.set(timeZone, made);
  return made;
}

/** Returns how far the zone's clocks are ahead of UTC at an instant, milliseconds. */
export function offsetAt(timeZone: string, instant: number): number {
  if (timeZone === 'UTC') return 0;
  const parts = Object.fromEntries(
    formatOf(timeZone)
      .formatToParts(instant)
      .map(({ type, value }) => [type, Number(value)]),
  );
  const { year = 0, month = 1, day = 1, hour = 0, minute = 0, second = 0 } = parts;
  const whole = Math.floor(instant / 1000) * 1000;
  return Date.UTC(year, month - 1, day, hour, minute, second) - whole;
}

/** A change of the clocks is searched for within this distance from a local time. */
const dayMs = 24 * 3_600_000;

/** Instants of a local time: usually one; two when clocks are set back; none when clocks are set forward. */
export interface Instants {
  readonly instants: readonly number[];
  /** If clocks skip this time: the instant reached with the offset before the change. */
  readonly shifted: number;
}

/** Returns the instants at which the zone's clocks show a local time. */
export function instantsOf(timeZone: string, local: number): Instants {
  const before = offsetAt(timeZone, local - dayMs);
  const after = offsetAt(timeZone, local + dayMs);
  const found = [...new Set([local - before, local - after])].filter(
    (instant) => instant + offsetAt(timeZone, instant) === local,
  );
  return { instants: found.sort((a, b) => a - b), shifted: local - before };
}
