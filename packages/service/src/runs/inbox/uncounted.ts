/** The runs of schedules and automations whose failures have not been counted yet. */
import type { Queryable } from '../../platform/store/database/database.ts';
import { defineStatement, nullable, text, uuid } from '../../platform/store/database/statement.ts';

/** Finds runs, oldest first. */
export const uncountedFailures = defineStatement({
  name: 'find_uncounted_failures',
  text: 'SELECT run_id FROM uncounted_failures ORDER BY run_id LIMIT 100',
  row: { run_id: uuid },
});

export const findNextUncounted = defineStatement({
  name: 'find_next_uncounted_failures',
  text: 'SELECT run_id FROM uncounted_failures WHERE run_id > $1 ORDER BY run_id LIMIT 100',
  row: { run_id: uuid },
});

/** If another process has locked the row, it counts the failure. */
const take = defineStatement({
  name: 'take_uncounted_failure',
  text: `
    WITH taken AS (SELECT run_id FROM uncounted_failures WHERE run_id = $1 FOR UPDATE SKIP LOCKED),
    gone AS (DELETE FROM uncounted_failures u USING taken WHERE u.run_id = taken.run_id)
    SELECT r.id, r.team_id, r.schedule_id, r.metadata->>'automation_id' AS automation_uid, r.status_message
    FROM taken JOIN runs r ON r.id = taken.run_id`,
  row: {
    id: uuid,
    team_id: uuid,
    schedule_id: nullable(uuid),
    automation_uid: nullable(text()),
    status_message: nullable(text()),
  },
});

/** A run whose failure is being counted. */
export interface FailedRun {
  readonly id: string;
  readonly teamId: string;
  readonly scheduleId: string | null;
  readonly automationUid: string | null;
  readonly statusMessage: string | null;
}

/** Takes the failure of a run, so that it is counted once, in the transaction of the caller. Returns null if another process takes it. */
export async function takeFailure(tx: Queryable, runId: string): Promise<FailedRun | null> {
  const [row] = await tx.query(take, [runId]);
  if (!row) return null;
  return {
    id: row.id,
    teamId: row.team_id,
    scheduleId: row.schedule_id,
    automationUid: row.automation_uid,
    statusMessage: row.status_message,
  };
}
