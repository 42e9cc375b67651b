/** Returns true for the text of a UUID. Any other text cannot be an id. */
export const isUuid = (text: string): boolean =>
  /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i.test(text);

/** SQL: the smallest UUIDv7 of a time. `ago`: an interval, such as `24 hours`. The ids of a table sort by time, so its primary key finds the old rows. */
export const idAt = (ago: string): string =>
  `(lpad(to_hex((extract(epoch FROM now() - interval '${ago}') * 1000)::bigint), 12, '0') || repeat('0', 20))::uuid`;
