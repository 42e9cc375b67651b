/** Texts of times, durations, amounts and sizes. */

const minute = 60_000;
const hour = 60 * minute;
const day = 24 * hour;

/** Returns a duration as `14 m 06 s`, `2 h 05 m` or `840 ms`. */
export function durationText(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  const seconds = Math.floor(ms / 1000);
  if (ms < 10_000) return `${(ms / 1000).toFixed(1)} s`;
  if (seconds < 60) return `${seconds} s`;
  const two = (value: number): string => String(value).padStart(2, '0');
  if (ms < hour) return `${Math.floor(seconds / 60)} m ${two(seconds % 60)} s`;
  if (ms < day) return `${Math.floor(ms / hour)} h ${two(Math.floor((ms % hour) / minute))} m`;
  return `${Math.floor(ms / day)} d ${two(Math.floor((ms % day) / hour))} h`;
}

/** Returns how far a time is from `now`: `now`, `26 min`, `3 h`, `in 5 days`. If the distance is more than 7 days, returns a date. */
export function relativeText(time: number, now: number): string {
  const distance = Math.abs(now - time);
  if (distance < 10_000) return 'now';
  const amount =
    distance < minute
      ? `${Math.floor(distance / 1000)} s`
      : distance < hour
        ? `${Math.floor(distance / minute)} min`
        : distance < day
          ? `${Math.floor(distance / hour)} h`
          : distance < 7 * day
            ? `${Math.floor(distance / day)} ${distance < 2 * day ? 'day' : 'days'}`
            : undefined;
  if (amount === undefined) return dateText(time);
  return time > now ? `in ${amount}` : amount;
}

/** Returns a past time as words that end a sentence such as "ended …": `now`, `26 min ago`, `on 25 Nov 2026`. */
export function pastText(time: number, now: number): string {
  const words = relativeText(time, now);
  return words === 'now' ? words : words === dateText(time) ? `on ${words}` : `${words} ago`;
}

const dateFormat = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short', year: 'numeric' });
const exactParts = new Intl.DateTimeFormat('en-GB', {
  year: 'numeric',
  month: '2-digit',
  day: '2-digit',
  hour: '2-digit',
  minute: '2-digit',
  second: '2-digit',
  timeZoneName: 'short',
});
const offsetFormat = new Intl.DateTimeFormat('en-GB', { timeZoneName: 'shortOffset' });
const clockFormat = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit' });
const secondsFormat = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit', second: '2-digit' });

/** Returns the day in the time zone of the browser: `25 Nov 2026`. */
export const dateText = (time: number): string => dateFormat.format(time);
/**
 * Returns day, time and zone of a time: `2026-11-28 10:03:05 CET (UTC+1)`. The zone is that of the browser. The offset is left out if the
 * name of the zone is itself an offset.
 */
export function exactText(time: number): string {
  const {
    year,
    month,
    day: date,
    hour: hours,
    minute: minutes,
    second,
    timeZoneName: zone,
  } = partsOf(exactParts, time);
  const offset = (partsOf(offsetFormat, time).timeZoneName ?? '').replace('GMT', 'UTC').replace(/\+0$/, '');
  const named = zone === undefined || /^(GMT|UTC)/.test(zone) ? offset : `${zone} (${offset})`;
  return `${year}-${month}-${date} ${hours}:${minutes}:${second} ${named}`;
}

const partsOf = (
  format: Intl.DateTimeFormat,
  time: number,
): { readonly [K in Intl.DateTimeFormatPartTypes]?: string } =>
  Object.fromEntries(format.formatToParts(time).map(({ type, value }) => [type, value]));

/** Returns hours and minutes: `14:27`. */
export const clockText = (time: number): string => clockFormat.format(time);
/** Returns hours, minutes and seconds: `14:27:31`. */
export const secondsText = (time: number): string => secondsFormat.format(time);

const dollars = new Intl.NumberFormat('en-US', { style: 'currency', currency: 'USD' });
/** Returns an amount in US dollars: `$1.84`, and `<$0.01` for less than a cent. */
export const dollarText = (usd: number): string => (usd > 0 && usd < 0.01 ? '<$0.01' : dollars.format(usd));

/** Returns the cost of requests to models. A cost is not known if the price of one of the models is not known. */
export const costText = (usage: { readonly inference_cost_usd?: number | undefined } | undefined): string =>
  usage === undefined
    ? dollarText(0)
    : usage.inference_cost_usd === undefined
      ? 'not known'
      : dollarText(usage.inference_cost_usd);

const numbers = new Intl.NumberFormat('en-US');
export const numberText = (value: number): string => numbers.format(value);

/** Returns a size in bytes: `41.6 KB`. */
export function sizeText(bytes: number): string {
  const units = ['B', 'KB', 'MB', 'GB', 'TB'];
  const power = bytes < 1 ? 0 : Math.min(units.length - 1, Math.floor(Math.log(bytes) / Math.log(1024)));
  const value = bytes / 1024 ** power;
  return `${power === 0 || value >= 100 ? Math.round(value) : value.toFixed(1)} ${units[power]}`;
}

/** Returns `1 run` or `3 runs`. */
export const countText = (count: number, one: string, many = `${one}s`): string =>
  `${numberText(count)} ${count === 1 ? one : many}`;

/** Returns the first letters of the first and the last word of a name. */
export function initials(name: string): string {
  const words = name.trim().split(/\s+/);
  const letters = words.length > 1 ? [words[0], words.at(-1)] : [words[0]];
  return letters.map((word) => [...(word ?? '')][0]?.toUpperCase() ?? '').join('');
}

/** Returns an estimate of dollars without more digits than it is worth, but never less than the estimate, which has what was spent. */
export const aboutOf = (usd: number): number => (usd < 10 ? usd : Math.ceil(usd));
