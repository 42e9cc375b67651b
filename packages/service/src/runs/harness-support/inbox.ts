import type { AgentInbox, InboxItem } from '@runyard/contract/agent/agent-protocol';
import type { AgentRequest, AllowFor, Decision } from '@runyard/contract/runs/approvals';
import type { RunMode } from '@runyard/contract/runs/message-origin';
import { defineStatement, integer, json, nullable, type RowOf, text } from '../../platform/store/database/statement.ts';
import type { ExecutionDeps } from '../executions/deps.ts';
import { isLateApproval, waitingHeldActions } from '../executions/held-actions/held-actions.ts';
import { renewLeaseByAgent } from '../executions/lease/agent-lease.ts';
import { agentVersion } from '../executions/notices.ts';
import type { Phase } from '../executions/phases.ts';
import { isAttempt } from '../executions/run-tokens/attempt.ts';
import type { RunIdentity } from '../executions/run-tokens/sessions.ts';
import { waitForRuns } from '../executions/wait-for-runs.ts';
import { type AttachmentRow, agentAttachment, attachmentsOf } from '../files/attachments/read.ts';
import { askedForChanges } from '../files/changes/read.ts';
import { isHandedOut } from '../runs/follow-ups/handed-out.ts';

/** A follow-up that no execution has taken. */
interface WaitingFollowup {
  readonly id: string;
  readonly position: number;
  readonly message: string;
  readonly mode: RunMode | null;
  /** Id of the request that the follow-up answers. */
  readonly answers: string | null;
  readonly decision: Decision | null;
  readonly allow_for: AllowFor | null;
  /** True: it approves a held action that no program tries any more. */
  readonly late: boolean;
  /** True if the follow-up is for the sandbox of a failed setup. */
  readonly debug: boolean;
  readonly attachments: readonly AttachmentRow[];
}

/** SQL: the columns from which the inbox of the execution `e` is built. They include only follow-ups after the position `after`. */
const inboxColumns = ({ runId, after, held }: Readonly<Record<'runId' | 'after' | 'held', string>>): string => `
    ${agentVersion(runId, 'e')} AS version, phase, stop_reason, interrupted_turn, finished_turns, ${askedForChanges(runId)} AS asked,
      ${waitingHeldActions({ runId, executionId: '$1', after: held })} AS held,
      (SELECT jsonb_agg(jsonb_build_object('id', w.id, 'position', w.position, 'message', w.message, 'mode', w.mode,
          'debug', w.is_debug, 'answers', w.answers, 'decision', w.decision, 'allow_for', w.allow_for, 'late', w.is_late,
          'attachments', ${attachmentsOf('a.followup_id = w.id')}) ORDER BY w.position)
       FROM (SELECT *, ${isLateApproval('f')} AS is_late FROM followups f WHERE f.run_id = ${runId} AND f.execution_id IS NULL AND f.position > ${after} AND ${isHandedOut('f', 'e')}
         AND (f.is_debug OR (SELECT r.state FROM runs r WHERE r.id = ${runId}) <> 'FAILED') ORDER BY f.position LIMIT 20) w) AS followups`;

const row = {
  version: text(),
  phase: text<Phase>(),
  stop_reason: nullable(text()),
  interrupted_turn: nullable(integer),
  finished_turns: integer,
  asked: nullable(integer),
  held: nullable(json<readonly { readonly number: number; readonly request: AgentRequest }[]>()),
  followups: nullable(json<readonly WaitingFollowup[]>()),
};

/**
 * Reads the items that the agent does not have yet. Also renews the lease, because an agent that asks for its inbox is alive, even if its
 * work has no output.
 */
const readInbox = defineStatement({
  name: 'read_inbox_and_renew_lease',
  text: `${renewLeaseByAgent({ executionId: '$1', leaseSeconds: '$6', tokenHash: '$4' })}
    RETURNING ${inboxColumns({ runId: '$2', after: '$3', held: '$5' })}`,
  row,
});

/** Reads the inbox and writes nothing, because the lease was renewed a moment ago and each event of the run causes such a read. */
const readInboxAgain = defineStatement({
  name: 'read_inbox',
  text: `SELECT ${inboxColumns({ runId: '$2', after: '$3', held: '$5' })}
    FROM executions e WHERE e.id = $1 AND ${isAttempt('e', '$4')}`,
  row,
});

/** Minimum time between two reads of an inbox. */
const restMs = 50;

/** Says which messages and orders the agent has already received. */
interface InboxPosition {
  /** Position of the last follow-up that the agent received. */
  readonly after: number;
  /** Number of the last turn that the agent was asked to interrupt. */
  readonly interrupted: number;
  /** Number of the last held action that the agent received; undefined: the agent does not ask about held actions. */
  readonly held?: number | undefined;
  /** Number of the last request for changed files that the agent received; undefined: the agent does not report changed files. */
  readonly changes?: number | undefined;
}

function itemsOf(row: RowOf<typeof readInbox>, { interrupted, changes }: InboxPosition): InboxItem[] {
  if (row.phase === 'stopping') return [{ type: row.stop_reason === 'ordered' ? 'cancel' : 'leave' }];
  const turn = row.interrupted_turn;
  const items: InboxItem[] = [];
  if (turn !== null && turn > interrupted && turn > row.finished_turns) items.push({ type: 'interrupt', turn });
  if (row.asked !== null && changes !== undefined && row.asked > changes)
    items.push({ type: 'changes', asked: row.asked });
  for (const held of row.held ?? []) items.push({ type: 'held', ...held });
  for (const { mode, attachments, answers, decision, allow_for: allowFor, debug, late, ...followup } of row.followups ??
    []) {
    items.push({
      type: 'follow_up',
      ...followup,
      ...(mode ? { mode } : {}),
      ...(answers ? { answers } : {}),
      ...(decision ? { decision } : {}),
      ...(allowFor ? { allow_for: allowFor } : {}),
      ...(late ? { late } : {}),
      ...(debug ? { debug } : {}),
      ...(attachments.length > 0 ? { attachments: attachments.map(agentAttachment) } : {}),
    });
  }
  return items;
}

/**
 * Returns the items for the agent. If there are none, waits for an item for at most `waitMs` milliseconds, and then returns an empty inbox.
 * `superseded`: the execution has ended or was assigned again, so the agent must stop.
 */
export async function waitForInbox(
  deps: ExecutionDeps,
  session: Pick<RunIdentity, 'runId' | 'executionId' | 'tokenHash'>,
  position: InboxPosition,
  waitMs: number,
  signal: AbortSignal,
): Promise<AgentInbox | 'superseded'> {
  const values = [session.executionId, session.runId, position.after, session.tokenHash, position.held ?? null];
  const notices = { onRun: deps.notices.onAgent };
  let isFirst = true;
  const inbox = await waitForRuns(notices, { runIds: () => [session.runId], waitMs, signal, restMs }, async () => {
    const [row] = isFirst
      ? await deps.db.query(readInbox, [...values, deps.timing.leaseSeconds])
      : await deps.db.query(readInboxAgain, values);
    isFirst = false;
    if (!row) return 'superseded';
    deps.notices.knowAgent(session.runId, row.version);
    const items = itemsOf(row, position);
    return items.length > 0 ? { items } : undefined;
  });
  return inbox ?? { items: [] };
}
