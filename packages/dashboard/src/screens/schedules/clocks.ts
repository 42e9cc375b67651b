/** Shows times of a schedule on two clocks: in the time zone of the schedule, and in the time zone of the browser. */

/** A time of a schedule as texts. */
export interface ShownTime {
  readonly time: string;
  /** The time in the time zone of the schedule: `Wed 25 Nov, 09:00 CET`. */
  readonly own: string;
  /** The same time in the time zone of the browser. Absent: both clocks show the same time. */
  readonly here?: string;
  /** The change of clocks between the time before and this time. Absent: there is none. */
  readonly change?: string;
}

/** Returns the difference of a time zone to UTC at a time: `UTC+05:30`, or `UTC` if there is no difference. */
function offsetOf(at: number, timeZone: string): string {
  const parts = new Intl.DateTimeFormat('en-GB', { timeZone, timeZoneName: 'longOffset' }).formatToParts(at);
  return (parts.find(({ type }) => type === 'timeZoneName')?.value ?? 'GMT').replace('GMT', 'UTC');
}

const clock = (timeZone: string): Intl.DateTimeFormat =>
  new Intl.DateTimeFormat('en-GB', {
    weekday: 'short',
    day: 'numeric',
    month: 'short',
    hour: '2-digit',
    minute: '2-digit',
    timeZone,
    timeZoneName: 'short',
  });

/** Returns the texts for the next times of a schedule. `now`: the current time in milliseconds; `zone` and `hereZone`: IANA names. */
export function onTwoClocks(
  times: readonly string[],
  { zone, hereZone, now }: { zone: string; hereZone: string; now: number },
): ShownTime[] {
  const [own, here] = [clock(zone), clock(hereZone)];
  let before = now;
  return times.map((time) => {
    const at = Date.parse(time);
    const isSame = offsetOf(at, zone) === offsetOf(at, hereZone);
    const changes = [zone, ...(hereZone === zone ? [] : [hereZone])].flatMap((each) => {
      const [from, to] = [offsetOf(before, each), offsetOf(at, each)];
      return from === to ? [] : [`Clocks change in ${each}: from ${from} to ${to}`];
    });
    before = at;
    return {
      time,
      own: own.format(at),
      ...(isSame ? {} : { here: here.format(at) }),
      ...(changes.length === 0 ? {} : { change: changes.join('. ') }),
    };
  });
}
