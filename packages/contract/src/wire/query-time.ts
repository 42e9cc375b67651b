import { z } from 'zod';

const rfc3339 = z.iso.datetime({ offset: true });

/** Returns the same moment in UTC, to the microsecond, with a year from 0001 to 9999; null if the text is not such a time. */
function inUtc(text: string): string | null {
  // "T" and "Z" may be written in lower case (RFC 3339, 5.6).
  const upper = text.toUpperCase();
  if (!rfc3339.safeParse(upper).success) return null;
  const utc = new Date(upper).toISOString();
  if (!/^(?!0000)\d{4}-/.test(utc)) return null;
  // Copy the fraction of the second from the text, because a Date would cut it to milliseconds. A time zone offset has whole minutes, so it
  // does not change the fraction.
  const fraction = /\.\d{1,6}/.exec(upper)?.[0] ?? '';
  return `${utc.slice(0, 19)}${fraction}Z`;
}

/**
 * A time in a query, converted to UTC. The conversion is needed because RFC 3339 allows values that PostgreSQL does not support:
 * offsets above 15:59, the year 0 and fractions of a hundred digits.
 */
export const QueryTime = z
  .string()
  .transform((text, context) => {
    const utc = inUtc(text);
    if (utc !== null) return utc;
    context.addIssue({
      code: 'custom',
      message: 'must be an RFC 3339 time with Z or an offset, between the years 1 and 9999',
    });
    return z.NEVER;
  })
  .meta({ format: 'date-time' });
