/** Waits between attempts: 5 s, 20 s, 80 s, 5 min, 21 min, 85 min, then 4 h; with 24 h of them a dozen attempts. */
const firstMs = 5_000;
const factor = 4;
const longestMs = 4 * 3_600_000;

/**
 * Milliseconds until the next attempt, after `failures` failed ones in a row. ± 25 %, so that what failed together does
 * not come back together. Never before what the receiver asked for in Retry-After (RFC 9110, 10.2.3).
 */
export function backoffMs(failures: number, random: () => number, retryAfterMs = 0): number {
  const exact = Math.min(firstMs * factor ** (failures - 1), longestMs);
  return Math.max(exact * (0.75 + 0.5 * random()), retryAfterMs);
}

/** Milliseconds that a Retry-After asks for: seconds or an HTTP date. 0 where there is none that makes sense. */
export function retryAfterMs(header: string | undefined, now: number): number {
  if (header === undefined) return 0;
  if (/^\d{1,9}$/.test(header)) return Number(header) * 1000;
  const date = Date.parse(header);
  return Number.isNaN(date) ? 0 : Math.max(0, date - now);
}
