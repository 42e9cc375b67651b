/** Follow-ups that an agent begins with. Each is taken once, under the lock of its run's row. */
import type { Decision } from '@runyard/contract/approvals';
import type { RunMode } from '@runyard/contract/run-request';
import type { OpenRequest } from '../../executions/debug-window/block.ts';
import { type Attempt, lockWorkingAttempt } from '../../executions/run-tokens/attempt.ts';
import type { AttachmentRow } from '../../files/attachments/agent-attachments.ts';
import type { Queryable, Statement } from '../../store/database/database.ts';
import { isUuid } from '../../store/database/uuid.ts';

const takeOne: Statement = {
  name: 'take_followup',
  text: `
    UPDATE followups SET execution_id = $3, taken_at = clock_timestamp()
    WHERE id = $2 AND run_id = $1 AND execution_id IS NULL`,
};

/** The agent plays this one next. The caller holds the run's row. */
export async function takeFollowup(
  tx: Queryable,
  session: { readonly runId: string; readonly executionId: string },
  followupId: string,
): Promise<void> {
  if (isUuid(followupId)) await tx.query(takeOne, [session.runId, followupId, session.executionId]);
}

/** Only before the agent's first turn: what comes later is a turn of its own. */
const takeWaiting: Statement = {
  name: 'take_waiting_followups',
  text: `
    UPDATE followups SET execution_id = $2, taken_at = clock_timestamp()
    WHERE run_id = $1 AND execution_id IS NULL
      AND EXISTS (SELECT FROM executions e WHERE e.id = $2 AND e.phase IN ('assigned', 'claimed'))`,
};

/** What the sandbox of a failed setup asked went with it: nothing is decided about the run's own work. */
const readTaken: Statement = {
  name: 'read_taken_followups',
  text: `
    SELECT id, message, mode, decision, CASE WHEN NOT is_debug THEN request END AS request
    FROM followups WHERE run_id = $1 AND execution_id = $2 ORDER BY position`,
};

/** A follow-up that belongs to the first prompt of an execution. */
export interface JoinedFollowup {
  readonly id: string;
  readonly message: string;
  readonly mode: RunMode | null;
  readonly decision: Decision | null;
  /** What it answers, asked in an earlier execution; null: it is just said. */
  readonly request: OpenRequest | null;
}

/** All that waits when the agent asks for its task joins its first prompt; asked again, the same and what came since. Throws `AttemptOver`. */
export async function joinFollowups(tx: Queryable, attempt: Attempt): Promise<JoinedFollowup[]> {
  const target = [attempt.runId, attempt.executionId];
  await lockWorkingAttempt(tx, attempt);
  await tx.query(takeWaiting, target);
  return await tx.query(readTaken, target);
}

const readFiles: Statement = {
  name: 'read_files_of_taken_followups',
  text: `
    SELECT a.id, a.file_name, a.mime_type, a.size_bytes, f.execution_id <> $2 AS is_earlier
    FROM followups f JOIN attachments a ON a.followup_id = f.id
    WHERE f.run_id = $1 AND f.execution_id IS NOT NULL ORDER BY f.position, a.position`,
};

/** Files of the follow-ups that were taken, by this execution or by an earlier one. */
export async function readTakenFiles(
  db: Queryable,
  session: { readonly runId: string; readonly executionId: string },
): Promise<(AttachmentRow & { readonly is_earlier: boolean })[]> {
  return await db.query(readFiles, [session.runId, session.executionId]);
}
