/** SQL: now plus the given number of seconds, by the database's clock. `seconds` is an SQL expression. */
export const fromNow = (seconds: string): string => `clock_timestamp() + make_interval(secs => (${seconds})::float8)`;

/** SQL: seconds that the agents of the run `run` have worked, in all executions of the run. Waits for follow-ups do not count. */
export const workedSeconds = (run: string): string => `(
  SELECT coalesce(sum(extract(epoch FROM coalesce(x.finished_at, x.ended_at, clock_timestamp()) - x.started_at) - x.idle_seconds), 0)::float8
  FROM executions x WHERE x.run_id = ${run} AND x.started_at IS NOT NULL)`;

/**
 * SQL: number of seconds that the run `run` may work, from `max_duration_minutes`; NULL: no limit. The configuration of an earlier version
 * may contain any value
 * here.
 */
export const allowedSeconds = (run: string): string => `(
  SELECT CASE WHEN jsonb_typeof(d.config->'max_duration_minutes') = 'number' THEN (d.config->>'max_duration_minutes')::float8 * 60 END
  FROM run_requests d WHERE d.run_id = ${run})`;
