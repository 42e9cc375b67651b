/** What a follow-up does, by the state of its run. */
import { randomUUIDv7 } from 'node:crypto';
import type { RunFollowupRequest } from '@runyard/contract/run-request';
import { isTerminal, type RunState } from '@runyard/contract/states';
import type { Queryable, Statement } from '../store/database.ts';
import { appendTimelineEvent } from './append.ts';
import { continueRun } from './continue.ts';
import type { RunActor, StoredAttachment } from './create.ts';
import { insertAttachments } from './insert-attachments.ts';
import type { Phase } from './transition.ts';
import { resume } from './transitions.ts';

/**
 * `joined`: waits for the agent, which plays it with its first prompt or as a later turn; `resumed`: an agent that
 * waited goes on; `continued`: a new execution; `empty` 400: nothing to say, and no saved conversation to go on with.
 */
export type FollowupOutcome = 'joined' | 'resumed' | 'continued' | 'empty' | 'not_found';

const lockRun: Statement = {
  name: 'lock_run_for_followup',
  text: 'SELECT state, current_execution_id FROM runs WHERE id = $1 FOR UPDATE',
};

/** In a statement of its own, after the lock; it locks the execution too, which may stop waiting at this moment. */
const lockExecution: Statement = {
  name: 'lock_execution_for_followup',
  text: 'SELECT phase FROM executions WHERE id = $1 FOR UPDATE',
};

const hasConversation: Statement = {
  name: 'has_saved_conversation',
  text: "SELECT FROM conversation_events WHERE run_id = $1 AND event->>'type' = 'turn_started' LIMIT 1",
};

const insertFollowup: Statement = {
  name: 'insert_followup',
  text: `
    INSERT INTO followups (id, run_id, message, mode, created_by_kind, created_by_uid) VALUES ($1, $2, $3, $4, $5, $6)`,
};

/** A person, or a service account; `run`: the agent of another run of the tree, whose id is the uid. */
type FollowupAuthor = RunActor | { readonly kind: 'run'; readonly uid: string };

interface Followup extends Omit<RunFollowupRequest, 'attachments'> {
  readonly from: FollowupAuthor;
  /** Stored already; absent: none. */
  readonly attachments?: readonly StoredAttachment[];
}

/** What an empty follow-up says to the agent. */
const goOn = 'Continue.';
/** What one says that brings files and no words. */
const lookAtFiles = 'See the attached files.';

/** Takes the follow-up: its row and what it changes about the run are one transaction, which is `tx`. */
export async function acceptFollowup(tx: Queryable, runId: string, followup: Followup): Promise<FollowupOutcome> {
  const [run] = await tx.query<{ state: RunState; current_execution_id: string }>(lockRun, [runId]);
  if (!run) return 'not_found';
  const [execution] = await tx.query<{ phase: Phase }>(lockExecution, [run.current_execution_id]);
  const waits = execution?.phase === 'idle';
  const isOver = isTerminal(run.state) && !waits;
  const begun = isOver && (await tx.query(hasConversation, [runId])).length === 1;
  const isEmpty = (followup.message ?? '').trim() === '';
  const hasFiles = (followup.attachments?.length ?? 0) > 0;
  if (isEmpty && !begun && !hasFiles) return 'empty';

  const id = randomUUIDv7();
  const { from } = followup;
  const message = isEmpty ? (hasFiles ? lookAtFiles : goOn) : followup.message;
  await tx.query(insertFollowup, [id, runId, message, followup.mode ?? null, from.kind, from.uid]);
  await insertAttachments(tx, { runId, followupId: id }, followup.attachments ?? []);
  const target = { runId, executionId: run.current_execution_id };
  const payload = {
    follow_up_id: id,
    ...(followup.mode ? { mode: followup.mode } : {}),
    ...(from.kind === 'run' ? { from_run_id: from.uid } : {}),
  };
  if (isOver) {
    await continueRun(tx, { ...target, payload, begun });
    return 'continued';
  }
  if (waits && (await resume(tx, { ...target, payload }))) return 'resumed';
  await appendTimelineEvent(tx, { ...target, type: 'followup_received', payload });
  return 'joined';
}
