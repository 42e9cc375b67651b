/** Accepts a follow-up for a run: reads the run under its locks, decides (`decide.ts`), and applies the decision. */

import { randomUUIDv7 } from 'node:crypto';
import { maxWaitingFollowups } from '@runyard/contract/limits';
import type { FollowupRouting, RunFollowupRequest } from '@runyard/contract/runs/run-request';
import type { RunState } from '@runyard/contract/runs/states';
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
import { isFreshCheck } from '../../executions/fresh-checks/fresh-checks.ts';
import { settleHeldAction } from '../../executions/held-actions/held-actions.ts';
import { beginDebugTurn, type OpenRequest } from '../../executions/idle/debug-window.ts';
import { tellAgent } from '../../executions/notices.ts';
import type { Phase } from '../../executions/phases.ts';
import { appendTimelineEvent } from '../../executions/timeline/timeline.ts';
import { continueRun } from '../../executions/transitions/continue.ts';
import { resume } from '../../executions/transitions/transitions.ts';
import { insertAttachments } from '../../files/attachments/insert.ts';
import type { StoredAttachment } from '../../files/attachments/store.ts';
import { decideFollowup, type FollowupDecision, type FollowupSituation, type RefusedMember } from './decide.ts';

/** An accepted follow-up. `answers`: id of the request that the follow-up answers; absent: the follow-up is not an answer. */
interface Accepted {
  readonly id: string;
  readonly routing: FollowupRouting;
  readonly answers?: string;
}

/** Outcome of a follow-up. The comment of each outcome begins with its HTTP status. */
export type FollowupOutcome =
  /** 200. The follow-up waits for the agent, which takes it with its first prompt or as a later turn. */
  | (Accepted & { readonly kind: 'joined' })
  /** 200. The agent was idle and continues with this follow-up. */
  | (Accepted & { readonly kind: 'resumed' })
  /** 200. The agent in the sandbox of a failed setup gets the follow-up; the run stays FAILED. */
  | (Accepted & { readonly kind: 'debugging' })
  /** 200. A new execution begins with the follow-up. */
  | (Accepted & { readonly kind: 'continued' })
  /** 404 */
  | { readonly kind: 'not_found' }
  /** 422: the run only runs a check of another run, so no agent takes messages. */
  | { readonly kind: 'is_check' }
  /** 400: the follow-up is empty, and there is no saved conversation to continue. */
  | { readonly kind: 'empty' }
  /** 400: the maximum number of follow-ups already waits for the agent. */
  | { readonly kind: 'full' }
  /**
   * 403: the run asks a question, the author of the follow-up is an agent, and the run's configuration does not accept decisions of this
   * agent.
   */
  | { readonly kind: 'may_not_answer' }
  /** 400: the run does not ask the question that the follow-up answers. */
  | { readonly kind: 'refused'; readonly path: RefusedMember; readonly reason: string };

/** A person, a service account, or the agent of another run of the tree; the uid is the id of that run. */
type FollowupAuthor =
  | (RunActor & { readonly displayName?: string })
  | {
      readonly kind: 'run';
      readonly uid: string;
      /** Authors whose texts may have influenced the sending agent, except the executor of the run that gets the follow-up. */
      readonly authors: readonly (RunActor | null)[];
    };

/** A follow-up whose files are in the blob store. */
export interface Followup extends Omit<RunFollowupRequest, 'attachments'> {
  readonly from: FollowupAuthor;
  readonly attachments?: readonly StoredAttachment[];
}

/** Accepts the follow-up in the transaction `tx`, so that the row of the follow-up and the changes of the run are committed together. */
export async function acceptFollowup(tx: Queryable, runId: string, followup: Followup): Promise<FollowupOutcome> {
  const run = await readSituation(tx, runId);
  if (!run) return { kind: 'not_found' };
  if (run === 'is_check') return { kind: 'is_check' };
  const decision = decideFollowup(run.situation, {
    ...followup,
    hasMessage: hasMessage(followup),
    hasFiles: hasFiles(followup),
  });
  switch (decision.kind) {
    case 'refuse':
      return { ...decision, kind: 'refused' };
    case 'refuse_empty':
      return { kind: 'empty' };
    case 'refuse_full':
      return { kind: 'full' };
    default:
      if (decision.question && !mayAnswer(followup.from, run.approvalsFrom)) return { kind: 'may_not_answer' };
      return await apply(tx, { runId, executionId: run.executionId }, followup, decision);
  }
}

/**
 * Returns whether the author may answer the run's question, with a decision or with a message. The author must be a person, or an agent
 * whose decisions the run's configuration accepts.
 */
function mayAnswer(from: FollowupAuthor, approvalsFrom: readonly string[]): boolean {
  const authors = from.kind === 'run' ? from.authors : [from];
  return authors.every(
    (author) => author !== null && (author.kind !== 'service_account' || approvalsFrom.includes(author.uid)),
  );
}

const hasMessage = ({ message }: Followup): boolean => (message ?? '').trim() !== '';
const hasFiles = ({ attachments }: Followup): boolean => (attachments?.length ?? 0) > 0;

const lockRun = defineStatement({
  name: 'lock_run_for_followup',
  text: `
    SELECT state, current_execution_id, open_request, ${isFreshCheck('runs.id')} AS is_check,
      (SELECT config->'approvals_from' FROM run_requests WHERE run_id = $1) AS approvals_from
    FROM runs WHERE id = $1 FOR UPDATE`,
  row: {
    state: text<RunState>(),
    current_execution_id: uuid,
    open_request: nullable(json<OpenRequest>()),
    is_check: boolean,
    approvals_from: nullable(json<string[]>()),
  },
});

/**
 * Runs after `lockRun`, and also locks the execution: the wait of an idle agent may end at this moment, by a statement that does not lock
 * the run.
 */
const lockExecution = defineStatement({
  name: 'lock_execution_for_followup',
  text: 'SELECT phase, debug_request FROM executions WHERE id = $1 FOR UPDATE',
  row: { phase: text<Phase>(), debug_request: nullable(json<OpenRequest>()) },
});

/**
 * This statement runs separately, after the locks. So it sees changes that other transactions committed while this transaction waited for
 * the locks.
 */
const readRecord = defineStatement({
  name: 'read_record_for_followup',
  text: `
    SELECT EXISTS (SELECT FROM conversation_events WHERE run_id = $1 AND event->>'type' = 'turn_started') AS has_conversation,
      EXISTS (SELECT FROM executions WHERE run_id = $1 AND started_at IS NOT NULL) AS has_started,
      (SELECT count(*) FROM (
        SELECT FROM followups WHERE run_id = $1 AND execution_id IS NULL LIMIT ${maxWaitingFollowups}) f) AS waiting`,
  row: { has_conversation: boolean, has_started: boolean, waiting: integer },
});

/**
 * Locks the run and its current execution, and reads the facts for the decision; null if there is no such run. `is_check`: the run only runs
 * a check of another run.
 */
async function readSituation(
  tx: Queryable,
  runId: string,
): Promise<
  | {
      readonly executionId: string;
      readonly situation: FollowupSituation;
      readonly approvalsFrom: readonly string[];
    }
  | null
  | 'is_check'
> {
  const [run] = await tx.query(lockRun, [runId]);
  if (!run) return null;
  if (run.is_check) return 'is_check';
  const executionId = run.current_execution_id;
  const [execution] = await tx.query(lockExecution, [executionId]);
  const [record] = await tx.query(readRecord, [runId]);
  if (!execution || !record) throw new Error(`the current execution ${executionId} of run ${runId} is missing`);
  const situation: FollowupSituation = {
    state: run.state,
    phase: execution.phase,
    openRequest: run.open_request,
    debugRequest: execution.debug_request,
    hasConversation: record.has_conversation,
    hasStarted: record.has_started,
    waiting: Number(record.waiting),
  };
  return { executionId, situation, approvalsFrom: run.approvals_from ?? [] };
}

type Acceptance = Extract<FollowupDecision, { readonly question: unknown }>;

/** Writes the follow-up and its files, and applies the decision to the run. */
async function apply(
  tx: Queryable,
  target: { readonly runId: string; readonly executionId: string },
  followup: Followup,
  decision: Acceptance,
): Promise<FollowupOutcome> {
  const id = await insertFollowup(tx, target.runId, followup, decision);
  if (decision.question?.held !== undefined)
    await settleHeldAction(tx, { runId: target.runId, id: decision.question.request_id }, followup);
  const { routing } = decision;
  const accepted = { id, routing, ...(decision.question ? { answers: decision.question.request_id } : {}) };
  const event = { ...target, payload: timelinePayload(id, followup, decision) };
  switch (decision.kind) {
    case 'continue':
      await continueRun(tx, { ...event, begun: !decision.withPrompt, isFresh: followup.workspace === 'changes' });
      return { kind: 'continued', ...accepted };
    case 'debug':
      if (decision.wakes) await beginDebugTurn(tx, target.executionId);
      await appendTimelineEvent(tx, { ...event, type: 'followup_received', changesRun: true });
      return { kind: 'debugging', ...accepted };
    case 'resume':
    case 'answer':
      await resume(tx, event);
      return { kind: 'resumed', ...accepted };
    case 'join':
      await appendTimelineEvent(tx, { ...event, type: 'followup_received', changesRun: true });
      return { kind: 'joined', ...accepted };
  }
}

const insertRow = defineStatement({
  name: 'insert_followup',
  text: `
    INSERT INTO followups (id, run_id, message, mode, created_by_kind, created_by_uid, decision, request, answers, is_debug, has_other_authors, authors,
      allow_for)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8::jsonb, $8::jsonb->>'request_id', $9, $10, $11, $12)
    RETURNING ${tellAgent('run_id')}`,
  row: {},
});

/** Writes the rows of the follow-up and of its files; returns the follow-up's id. */
async function insertFollowup(
  tx: Queryable,
  runId: string,
  followup: Followup,
  { kind, question }: Acceptance,
): Promise<string> {
  const id = randomUUIDv7();
  const { mode, from, decision, allow_for: allowFor, attachments } = followup;
  await tx.query(insertRow, [
    id,
    runId,
    messageFor(followup, question),
    mode ?? null,
    from.kind,
    from.uid,
    decision ?? null,
    question ? JSON.stringify(question) : null,
    kind === 'debug',
    from.kind === 'run' && from.authors.length > 0,
    JSON.stringify(authorsOf(followup, question)),
    decision === 'approve' ? (allowFor ?? 'once') : null,
  ]);
  await insertAttachments(tx, { runId, followupId: id, attachments: attachments ?? [] });
  return id;
}

/**
 * Returns the authors of the follow-up's text. An approval and a choice among the answers that the agent offered have no author, because
 * the agent wrote their text.
 */
function authorsOf(followup: Followup, question: OpenRequest | null): readonly (RunActor | null)[] {
  const { from, message = '', mode } = followup;
  if (from.kind === 'run') return from.authors;
  const isChoice = question !== null && (!hasMessage(followup) || question.options?.includes(message) === true);
  return isChoice && !hasFiles(followup) && mode === undefined ? [] : [{ kind: from.kind, uid: from.uid }];
}

/** Returns the text for the agent, even if the sender wrote no text. */
function messageFor(followup: Followup, question: OpenRequest | null): string {
  if (hasMessage(followup)) return followup.message ?? '';
  if (hasFiles(followup)) return 'See the attached files.';
  // An answer without a message stays empty: the decision alone is the answer.
  return question ? '' : 'Continue.';
}

/** Returns the payload of the timeline event `followup_received`. */
function timelinePayload(
  id: string,
  { mode, from, decision, allow_for: allowFor, workspace }: Followup,
  { question }: Acceptance,
) {
  return {
    follow_up_id: id,
    by: {
      type: from.kind,
      uid: from.uid,
      ...('displayName' in from ? { display_name: from.displayName } : {}),
    },
    ...(mode ? { mode } : {}),
    ...(question ? { answers: question.request_id } : {}),
    ...(decision ? { decision } : {}),
    ...(allowFor ? { allow_for: allowFor } : {}),
    ...(workspace ? { workspace } : {}),
    ...(from.kind === 'run' ? { from_run_id: from.uid } : {}),
  };
}
