/** Returns true for the text of a UUID. Any other text cannot be an id. */
export const isUuid = (text: string): boolean =>
  /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i.test(text);

/**
 * Returns the SQL of the smallest UUIDv7 of a past time. `ago`: how long ago, such as `24 hours`. UUIDv7 ids sort by time, so a query
 * finds the older rows of a table with its primary key.
 */
export const idAt = (ago: string): string =>
  `(lpad(to_hex((extract(epoch FROM now() - interval '${ago}') * 1000)::bigint), 12, '0') || repeat('0', 20))::uuid`;

/** An id that is greater than the ids of all rows. */
export const greatestUuid = 'ffffffff-ffff-ffff-ffff-ffffffffffff';
