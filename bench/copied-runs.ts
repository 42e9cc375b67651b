/** Makes many runs for the benchmarks of the queue, as copies of one run. */
import type { Database } from '../packages/service/src/platform/store/database/database.ts';

export interface Copies {
  readonly count: number;
  readonly state: string;
  readonly phase: string;
  /** Teams to which the copies belong. All teams get the same number of copies, and all pools of a team get the same number of its copies. */
  readonly teams: readonly string[];
  readonly pools: readonly string[];
  /**
   * Worker connections to which the copies are assigned. Each connection gets the same number of copies. Absent: the copies are assigned
   * to no connection.
   */
  readonly connections?: readonly string[];
}

/** Number of rows that one statement inserts. */
const atOnce = 1_000;

/** Copies a run and its execution. */
export async function copyRuns(db: Database, runId: string, copies: Copies): Promise<void> {
  const { count, state, phase, teams, pools, connections = [] } = copies;
  for (let done = 0; done < count; done += atOnce) {
    await db.query(
      `WITH made AS MATERIALIZED (
        SELECT gen_random_uuid() AS id, gen_random_uuid() AS execution, gen_random_uuid() AS conversation,
          ($4::uuid[])[1 + n % cardinality($4)] AS team, ($5::text[])[1 + n / cardinality($4) % cardinality($5)] AS pool,
          ($8::uuid[])[1 + n % nullif(cardinality($8), 0)] AS connection
        FROM generate_series($2::int, $3::int - 1) n
      ), runs AS (
        INSERT INTO runs (id, team_id, state, title, model_id, harness, source, creator_kind, creator_uid, executor_kind, executor_uid,
          conversation_id, current_execution_id)
        SELECT made.id, made.team, $6::text, title, model_id, harness, source, creator_kind, creator_uid, executor_kind, executor_uid,
          made.conversation, made.execution FROM runs r, made WHERE r.id = $1
      ), requests AS (
        INSERT INTO run_requests SELECT made.id, prompt, config, contents, rights FROM run_requests q, made WHERE q.run_id = $1
      )
      INSERT INTO executions (id, run_id, team_id, number, pool, phase, available_at, connection_id, worker_instance, lease_until, deadline_at)
      SELECT made.execution, made.id, made.team, e.number, made.pool, $7, clock_timestamp(), made.connection,
        CASE WHEN made.connection IS NOT NULL THEN 'i' END, CASE WHEN made.connection IS NOT NULL THEN now() + interval '1 hour' END,
        CASE WHEN made.connection IS NOT NULL THEN now() + interval '1 hour' END
      FROM executions e, made WHERE e.run_id = $1`,
      [runId, done, Math.min(done + atOnce, count), teams, pools, state, phase, connections],
    );
  }
}
