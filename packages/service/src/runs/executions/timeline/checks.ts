/** Reads the ended checks of a run from its timeline, and notes that a code host shows no check. */
import type { Queryable } from '../../../platform/store/database/database.ts';
import { defineStatement, text, uuid } from '../../../platform/store/database/statement.ts';
import { appendTimelineEvent } from './timeline.ts';

const readEnded = defineStatement({
  name: 'read_ended_checks_of_run',
  text: `
    SELECT DISTINCT ON (payload->>'name') payload->>'name' AS name, payload->>'state' AS state,
      coalesce(payload->>'output_tail', '') AS output
    FROM run_events WHERE run_id = $1 AND event_type = 'check_finished' ORDER BY payload->>'name', seq DESC LIMIT 20`,
  row: { name: text(), state: text(), output: text() },
});

/** Returns the last end of each check of the run. */
export const readEndedChecks = async (db: Queryable, runId: string) => await db.query(readEnded, [runId]);

const readExecution = defineStatement({
  name: 'read_last_execution_of_run',
  text: 'SELECT id FROM executions WHERE run_id = $1 ORDER BY number DESC LIMIT 1',
  row: { id: uuid },
});

/** Notes in the timeline of the run why the code host shows no check run. */
export async function noteNoCheckRun(db: Queryable, runId: string, reason: string): Promise<void> {
  const [execution] = await db.query(readExecution, [runId]);
  if (!execution) return;
  const payload = { tool: 'check_run', reason };
  await appendTimelineEvent(db, { runId, executionId: execution.id, type: 'github_answered', payload });
}
