/** What a follow-up does, by the state of its run. */

import { randomUUIDv7 } from 'node:crypto';
import { maxWaitingFollowups } from '@runyard/contract/limits';
import type { RunFollowupRequest } from '@runyard/contract/run-request';
import { isTerminal } from '@runyard/contract/run-states';
import type { RunState } from '@runyard/contract/states';
import type { RunActor } from '../../access/actor.ts';
import type { OpenRequest } from '../../executions/debug-window/block.ts';
import { beginDebugTurn } from '../../executions/debug-window/setup-window.ts';
import { appendTimelineEvent } from '../../executions/timeline/append.ts';
import { continueRun } from '../../executions/transitions/continue.ts';
import type { Phase } from '../../executions/transitions/transition.ts';
import { resume } from '../../executions/transitions/transitions.ts';
import { insertAttachments } from '../../files/attachments/insert-attachments.ts';
import type { StoredAttachment } from '../../files/attachments/stored.ts';
import type { Queryable, Statement } from '../../store/database/database.ts';

/**
 * `debugging`: for the sandbox of a failed setup; the run stays as it is. `refused` 400: no such request is open. `joined`: waits for the agent, which plays it with its first prompt or as a later turn; `resumed`: an agent that
 * waited goes on; `full` 400: as many wait for the agent as may; `continued`: a new execution; `empty` 400: nothing to say, and no saved conversation to go on with.
 */
export type FollowupOutcome =
  | { readonly kind: 'joined' }
  | { readonly kind: 'resumed' }
  | { readonly kind: 'debugging' }
  | { readonly kind: 'continued' }
  | { readonly kind: 'empty' }
  | { readonly kind: 'not_found' }
  | { readonly kind: 'full' }
  | { readonly kind: 'refused'; readonly path: 'decision' | 'request_id'; readonly reason: string };

const lockRun: Statement = {
  name: 'lock_run_for_followup',
  text: 'SELECT state, current_execution_id, open_request FROM runs WHERE id = $1 FOR UPDATE',
};

const wasPlayed: Statement = {
  name: 'was_prompt_played',
  text: 'SELECT FROM executions WHERE run_id = $1 AND started_at IS NOT NULL LIMIT 1',
};

/** In a statement of its own, after the lock; it locks the execution too, which may stop waiting at this moment. */
const lockExecution: Statement = {
  name: 'lock_execution_for_followup',
  text: 'SELECT phase, debug_request FROM executions WHERE id = $1 FOR UPDATE',
};

const hasConversation: Statement = {
  name: 'has_saved_conversation',
  text: "SELECT FROM conversation_events WHERE run_id = $1 AND event->>'type' = 'turn_started' LIMIT 1",
};

const countWaiting: Statement = {
  name: 'count_waiting_followups',
  text: `SELECT FROM followups WHERE run_id = $1 AND execution_id IS NULL LIMIT ${maxWaitingFollowups}`,
};

const insertFollowup: Statement = {
  name: 'insert_followup',
  text: `
    INSERT INTO followups (id, run_id, message, mode, created_by_kind, created_by_uid, decision, request, answers, is_debug)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8::jsonb, $8::jsonb->>'request_id', $9)`,
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

interface LockedRun {
  state: RunState;
  current_execution_id: string;
  /** While BLOCKED. */
  open_request: OpenRequest | null;
}

interface LockedExecution {
  phase: Phase;
  /** Counts while it is idle. */
  debug_request: OpenRequest | null;
}

/** Why the follow-up cannot answer what the run asks; undefined: it can, or does not want to. */
function refusal(
  { decision, request_id }: Pick<RunFollowupRequest, 'decision' | 'request_id'>,
  state: RunState,
  asks: OpenRequest | null,
): FollowupOutcome | undefined {
  const refused = (path: 'decision' | 'request_id', reason: string) => ({ kind: 'refused', path, reason }) as const;
  if (asks === null) {
    const reason = `the run is ${state}${state === 'FAILED' ? '' : ', not BLOCKED'}: it asks nothing`;
    if (decision !== undefined) return refused('decision', reason);
    return request_id === undefined ? undefined : refused('request_id', reason);
  }
  if (request_id === undefined || request_id === asks.request_id) return undefined;
  return refused('request_id', `is not open any more; the run asks ${asks.request_id} now`);
}

/** Takes the follow-up: its row and what it changes about the run are one transaction, which is `tx`. */
export async function acceptFollowup(tx: Queryable, runId: string, followup: Followup): Promise<FollowupOutcome> {
  const [run] = await tx.query<LockedRun>(lockRun, [runId]);
  if (!run) return { kind: 'not_found' };
  const [execution] = await tx.query<LockedExecution>(lockExecution, [run.current_execution_id]);
  const waits = execution?.phase === 'idle';
  const asks = run.open_request ?? (run.state === 'FAILED' && waits ? execution.debug_request : null);
  const refused = refusal(followup, run.state, asks);
  if (refused) return refused;
  const isDebug = run.state === 'FAILED' && (waits || execution?.phase === 'running');
  const isOver = (isTerminal(run.state) || asks !== null) && !waits && !isDebug;
  const begun = isOver && (await tx.query(hasConversation, [runId])).length === 1;
  const { from, decision } = followup;
  const isEmpty = (followup.message ?? '').trim() === '';
  const hasFiles = (followup.attachments?.length ?? 0) > 0;
  if (isEmpty && decision === undefined && !begun && !hasFiles) return { kind: 'empty' };

  // One that continues the run is never refused: with it those that wait are played at last.
  if (!isOver && (await tx.query(countWaiting, [runId])).length === maxWaitingFollowups) return { kind: 'full' };

  const id = randomUUIDv7();
  // To a question an empty message says nothing: the agent is told that nobody decided.
  const instead = hasFiles ? lookAtFiles : asks ? '' : goOn;
  await tx.query(insertFollowup, [
    id,
    runId,
    isEmpty ? instead : followup.message,
    followup.mode ?? null,
    from.kind,
    from.uid,
    decision ?? null,
    asks ? JSON.stringify(asks) : null,
    isDebug,
  ]);
  await insertAttachments(tx, { runId, followupId: id }, followup.attachments ?? []);
  const target = { runId, executionId: run.current_execution_id };
  const payload = {
    follow_up_id: id,
    by: { type: from.kind, uid: from.uid },
    ...(followup.mode ? { mode: followup.mode } : {}),
    ...(asks ? { answers: asks.request_id } : {}),
    ...(decision ? { decision } : {}),
    ...(from.kind === 'run' ? { from_run_id: from.uid } : {}),
  };
  if (isOver) {
    // What was said in the window of a failed setup was said before the run's prompt.
    const isBegun = begun && (await tx.query(wasPlayed, [runId])).length === 1;
    await continueRun(tx, { ...target, payload, begun: isBegun });
    return { kind: 'continued' };
  }
  if (isDebug) {
    if (waits) await beginDebugTurn(tx, run.current_execution_id);
    await appendTimelineEvent(tx, { ...target, type: 'followup_received', payload });
    return { kind: 'debugging' };
  }
  if (waits && (await resume(tx, { ...target, payload }))) return { kind: 'resumed' };
  await appendTimelineEvent(tx, { ...target, type: 'followup_received', payload });
  return { kind: 'joined' };
}
