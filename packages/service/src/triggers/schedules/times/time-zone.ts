/**
 * Converts between instants and local times of IANA time zones. A local time is written in milliseconds since 1970, as if the zone's
 * clocks showed UTC.
 */

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
  // The map has at most a few hundred entries, because there are no more time zones.
  formats.set(timeZone, made);
  return made;
}

/** Returns how many milliseconds the zone's clocks are ahead of UTC at an instant. */
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

/** The instants at which the zone's clocks show a local time: usually one; two if clocks are set back over this time; none if clocks skip it. */
export interface Instants {
  readonly instants: readonly number[];
  /** Set if clocks skip the local time: the instant that the local time would be with the offset before the change. */
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
