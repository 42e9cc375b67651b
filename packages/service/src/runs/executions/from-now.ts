/** SQL: the time so many seconds from now, by the database's clock. `seconds` is an SQL expression. */
export const fromNow = (seconds: string): string => `clock_timestamp() + make_interval(secs => (${seconds})::float8)`;
