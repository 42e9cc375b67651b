/** Failures of runs that a new run repeats. */

import type { AmbientAgentConfig } from '@runyard/contract/runs/config';
import type { RunRetry } from '@runyard/contract/runs/retry';
import type { RunSourceType } from '@runyard/contract/runs/states';
import type { Queryable } from '../../../platform/store/database/database.ts';
import {
  boolean,
  defineStatement,
  integer,
  json,
  nullable,
  text,
  uuid,
} from '../../../platform/store/database/statement.ts';
import type { RunActor } from '../../../team/access/actor.ts';
import type { RunRights } from '../../../team/access/contents/run-rights.ts';
import { maxLiveOf } from '../queue/release-children.ts';

/**
 * Returns the part of a change to FAILED or ERROR that plans a retry, if the configuration of the run names the error code `$5`. `relation`
 * has the id of the run. So each failure is planned once, together with the state. `unrepeated` has the runs of `relation` without a retry:
 * people are notified only of the last failure of a chain.
 */
export const planRetry = (relation: string): string => `, retry AS (
        INSERT INTO run_retries (run_id, due_at)
        SELECT ${relation}.id, clock_timestamp() + make_interval(secs => coalesce((q.config #>> '{retry,backoff_seconds}')::float8, 0))
        FROM ${relation} JOIN run_requests q ON q.run_id = ${relation}.id WHERE q.config #> '{retry,on}' ? $5::text
        ON CONFLICT DO NOTHING RETURNING run_id
      ), unrepeated AS (
        SELECT * FROM ${relation} WHERE NOT EXISTS (SELECT FROM retry WHERE retry.run_id = ${relation}.id)
      )`;

const pageSize = 50;
const page = (behind: string): string => `
    SELECT run_id FROM run_retries WHERE handled_at IS NULL AND due_at <= clock_timestamp() ${behind} ORDER BY run_id LIMIT ${pageSize}`;

/** Finds retries that are due, the first page. */
export const findDueRetries = defineStatement({ name: 'find_due_retries', text: page(''), row: { run_id: uuid } });
const findNext = defineStatement({
  name: 'find_next_due_retries',
  text: page('AND run_id > $1'),
  row: { run_id: uuid },
});

/** The pages of due retries, for a sweep. */
export const dueRetries = (db: Queryable) => ({
  pageSize,
  firstPage: () => db.query(findDueRetries),
  pageAfter: (id: string) => db.query(findNext, [id]),
});

const take = defineStatement({
  name: 'take_retry',
  text: `
    UPDATE run_retries SET handled_at = clock_timestamp() WHERE run_id = (
      SELECT run_id FROM run_retries WHERE run_id = $1 AND handled_at IS NULL AND due_at <= clock_timestamp() FOR UPDATE SKIP LOCKED)
    RETURNING run_id`,
  row: { run_id: uuid },
});

/** Takes a due retry in a transaction. Returns false if another process has taken it. */
export async function takeRetry(tx: Queryable, runId: string): Promise<boolean> {
  return (await tx.query(take, [runId])).length === 1;
}

const readFailed = defineStatement({
  name: 'read_failed_run_to_retry',
  text: `
    SELECT r.team_id, r.current_execution_id AS execution_id, r.state IN ('FAILED', 'ERROR') AS has_failed, r.source,
      jsonb_build_object('kind', r.executor_kind, 'uid', r.executor_uid) AS executor, r.parent_run_id,
      CASE WHEN r.schedule_id IS NOT NULL THEN jsonb_build_object('id', r.schedule_id, 'name', r.schedule_name, 'cronSchedule', r.schedule_cron) END AS schedule,
      q.config, q.rights, p.rights AS parent_rights, ${maxLiveOf('p')} AS max_live_children
    FROM runs r JOIN run_requests q ON q.run_id = r.id LEFT JOIN run_requests p ON p.run_id = r.parent_run_id WHERE r.id = $1`,
  row: {
    team_id: uuid,
    execution_id: uuid,
    has_failed: boolean,
    source: text<RunSourceType>(),
    executor: json<RunActor>(),
    parent_run_id: nullable(uuid),
    schedule: nullable(json<{ readonly id: string; readonly name: string; readonly cronSchedule: string }>()),
    config: json<AmbientAgentConfig & { readonly retry?: RunRetry }>(),
    rights: nullable(json<RunRights>()),
    parent_rights: nullable(json<RunRights>()),
    /** Of the parent. */
    max_live_children: integer,
  },
});

/** Reads a run that has failed; undefined if it was deleted. */
export async function readFailedRun(db: Queryable, runId: string) {
  const [run] = await db.query(readFailed, [runId]);
  return run;
}
export type FailedRun = NonNullable<Awaited<ReturnType<typeof readFailedRun>>>;
