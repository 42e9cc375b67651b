/**
 * How values of the database arrive in JavaScript, the same on every connection:
 *
 * - `bigint` (and `count(*)`): a number. Beyond 2^53 the query fails, instead of giving a nearby number.
 * - `timestamptz`: RFC 3339 text in UTC with all six digits of a second, `2026-11-21T10:44:01.123456Z`, ready for the
 *   wire, for cursors and as a parameter again. A JavaScript `Date` has milliseconds only: as a cursor it skips rows
 *   (activepieces #14323). `infinity` and `-infinity` stay as they are.
 * - `numeric`: text, exact. `jsonb`: parsed. `bytea`: Buffer. `uuid`: text.
 *
 * Parameters: give `jsonb` as `JSON.stringify(…)`, because a JavaScript array would be sent as a PostgreSQL array.
 */
import pg from 'pg';

const int8 = 20;
const timestamptz = 1184;

/** For `types` of a `pg` client or pool. */
export const valueTypes: pg.CustomTypesConfig = {
  getTypeParser: ((oid: number, format?: 'text' | 'binary') => {
    if (format !== 'binary') {
      if (oid === int8) return parseInt8;
      if (oid === timestamptz) return parseTimestamp;
    }
    return pg.types.getTypeParser(oid, format);
  }) as typeof pg.types.getTypeParser,
};

function parseInt8(text: string): number {
  const value = Number(text);
  if (!Number.isSafeInteger(value)) throw new RangeError(`bigint ${text} is beyond what a number holds exactly`);
  return value;
}

/** `2026-11-21 10:44:01.12+00` (DateStyle ISO, time zone UTC, trailing zeros cut) to RFC 3339 with six digits. */
function parseTimestamp(text: string): string {
  const match = /^(\d{4,}-\d\d-\d\d) (\d\d:\d\d:\d\d)(?:\.(\d+))?\+00$/.exec(text);
  if (match === null) {
    if (text === 'infinity' || text === '-infinity') return text;
    throw new RangeError(`time ${text} is not a UTC time after Christ`);
  }
  return `${match[1]}T${match[2]}.${(match[3] ?? '').padEnd(6, '0')}Z`;
}
