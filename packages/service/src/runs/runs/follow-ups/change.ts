/** Changes and withdraws follow-ups that no agent has. */

import { isTerminal } from '@runyard/contract/runs/run-states';
import type { RunState } from '@runyard/contract/runs/states';
import { isAtLeast } from '@runyard/contract/wire/access';
import type { Queryable } from '../../../platform/store/database/database.ts';
import { boolean, defineStatement, text, uuid } from '../../../platform/store/database/statement.ts';
import { isUuid } from '../../../platform/store/database/uuid.ts';
import { recordAction } from '../../../team/access/audit/record.ts';
import type { Principal } from '../../../team/access/keys/principal.ts';
import type { PolicyVerdict } from '../../../team/content-policy/content-policy.ts';
import { withoutSecrets } from '../../../team/redaction/agent-text.ts';
import { hasMoreClones } from '../../executions/run-tokens/personal-clones.ts';
import { appendTimelineEvent } from '../../executions/timeline/timeline.ts';
import { deleteFilesOfFollowup } from '../../files/retention.ts';
import { type StorageRefusal, takeRoomForRequest } from '../../files/stored-bytes.ts';
import { isVisibleRun } from '../read/read.ts';
import { isHandedOut } from './handed-out.ts';
import { checkSender, type SendDeps, type SenderRefusal } from './send.ts';

/** Why a waiting follow-up cannot be changed or withdrawn. The comment of each reason begins with its HTTP status. */
export type ChangeRefusal =
  /** 404 */
  | { readonly kind: 'no_followup' }
  /** 403: `needs` says whose right it is. */
  | { readonly kind: 'not_yours'; readonly needs: 'author' | 'author_or_admin' }
  /** 409: an agent has it or had it, or it is an answer. */
  | { readonly kind: 'taken' }
  /** 409: the run was queued again only for this follow-up. */
  | { readonly kind: 'needed' };

/** Outcome of a change. The comment of each outcome begins with its HTTP status. */
export type EditOutcome =
  /** 200 */
  | { readonly kind: 'edited' }
  | ChangeRefusal
  | SenderRefusal
  | Exclude<PolicyVerdict, { kind: 'allowed' }>
  | StorageRefusal;

interface Target {
  readonly principal: Principal;
  readonly runId: string;
  readonly followupId: string;
}

const lockRun = defineStatement({
  name: 'lock_run_of_waiting_followup',
  text: 'SELECT state, current_execution_id FROM runs WHERE id = $1 AND team_id = $2 FOR UPDATE',
  row: { state: text<RunState>(), current_execution_id: uuid },
});

/**
 * Runs after `lockRun`, so it sees the changes of the transactions for which this transaction waited. `is_needed`: without this follow-up, the
 * execution would have nothing to do. It has not begun, an earlier execution has begun, and no other follow-up waits.
 */
const readWaiting = defineStatement({
  name: 'read_waiting_followup',
  text: `
    SELECT f.created_by_kind, f.created_by_uid, f.execution_id IS NOT NULL OR ${isHandedOut('f', 'e')} AS is_taken,
      e.started_at IS NULL AND EXISTS (SELECT FROM executions x WHERE x.run_id = $1 AND x.started_at IS NOT NULL)
        AND NOT EXISTS (SELECT FROM followups o WHERE o.run_id = $1 AND o.id <> f.id AND o.execution_id IS NULL) AS is_needed
    FROM followups f JOIN executions e ON e.id = $3 WHERE f.id = $2 AND f.run_id = $1`,
  row: { created_by_kind: text(), created_by_uid: text(), is_taken: boolean, is_needed: boolean },
});

const setMessage = defineStatement({
  name: 'edit_waiting_followup',
  text: 'UPDATE followups SET message = $2 WHERE id = $1',
  row: {},
});

const remove = defineStatement({
  name: 'withdraw_waiting_followup',
  text: 'DELETE FROM followups WHERE id = $1',
  row: {},
});

/**
 * Locks the run, and returns the id of its execution if the caller may change the follow-up and no agent has it. An agent takes follow-ups,
 * and gets new ones after a turn, only under the same lock.
 */
async function hold(
  tx: Queryable,
  { principal, runId, followupId }: Target,
  action: 'edit' | 'withdraw',
): Promise<ChangeRefusal | { readonly kind: 'held'; readonly executionId: string }> {
  const [run] = await tx.query(lockRun, [runId, principal.teamId]);
  if (!run) return { kind: 'no_followup' };
  const executionId = run.current_execution_id;
  const [found] = await tx.query(readWaiting, [runId, followupId, executionId]);
  if (!found) return { kind: 'no_followup' };
  const { kind, uid } = principal.creator;
  const isAuthor = found.created_by_kind === kind && found.created_by_uid === uid;
  const administers = action === 'withdraw' && kind === 'user' && isAtLeast(principal.role, 'admin');
  if (!isAuthor && !administers) return { kind: 'not_yours', needs: action === 'edit' ? 'author' : 'author_or_admin' };
  if (found.is_taken) return { kind: 'taken' };
  if (action === 'withdraw' && found.is_needed && !isTerminal(run.state)) return { kind: 'needed' };
  return { kind: 'held', executionId };
}

/** Writes who changed the follow-up to the timeline and to the audit log. */
async function record(
  tx: Queryable,
  { principal, runId, followupId }: Target,
  executionId: string,
  type: 'followup_edited' | 'followup_withdrawn',
): Promise<void> {
  const { kind, uid, displayName } = principal.creator;
  const payload = { follow_up_id: followupId, by: { type: kind, uid, display_name: displayName } };
  await appendTimelineEvent(tx, { runId, executionId, type, payload, changesRun: true });
  await recordAction(tx, principal, {
    action: type === 'followup_edited' ? 'run.edit_follow_up' : 'run.withdraw_follow_up',
    subject: { type: 'run', uid: runId },
    after: { follow_up_id: followupId },
  });
}

/** Replaces the message of a waiting follow-up. The new text is checked like a new follow-up of this author. */
export async function editFollowup(deps: SendDeps, target: Target, message: string): Promise<EditOutcome> {
  const { principal, runId, followupId } = target;
  const { executionDeps, contentPolicy } = deps;
  const { teamId } = principal;
  if (!isUuid(followupId)) return { kind: 'no_followup' };
  const sender = await checkSender(deps, principal, runId);
  if (sender.kind !== 'may_send') return sender;
  const text = withoutSecrets(executionDeps, sender, message);
  const verdict = await contentPolicy?.check(teamId, [{ kind: 'prompt', text }]);
  if (verdict && verdict.kind !== 'allowed') return verdict;
  const isFull = await takeRoomForRequest(executionDeps, undefined, teamId, { texts: [text], fileBytes: [] });
  if (isFull) return isFull;
  const outcome = await executionDeps.db.transaction(async (tx) => {
    const held = await hold(tx, target, 'edit');
    if (held.kind !== 'held') return held;
    if (await hasMoreClones(tx, runId, sender.clones)) return { kind: 'more_clones' as const };
    await tx.query(setMessage, [followupId, text]);
    await record(tx, target, held.executionId, 'followup_edited');
    return { kind: 'edited' as const };
  });
  return outcome.kind === 'more_clones' ? await editFollowup(deps, target, message) : outcome;
}

/** Deletes a waiting follow-up with its files. */
export async function withdrawFollowup(
  { executionDeps: { db }, blobs }: Pick<SendDeps, 'executionDeps' | 'blobs'>,
  target: Target,
): Promise<ChangeRefusal | { readonly kind: 'withdrawn' }> {
  const { principal, runId, followupId } = target;
  if (!isUuid(followupId) || !(await isVisibleRun(db, principal.teamId, runId))) return { kind: 'no_followup' };
  const outcome = await db.transaction(async (tx) => {
    const held = await hold(tx, target, 'withdraw');
    if (held.kind !== 'held') return held;
    const blobKeys = await deleteFilesOfFollowup(tx, followupId);
    await tx.query(remove, [followupId]);
    await record(tx, target, held.executionId, 'followup_withdrawn');
    return { kind: 'withdrawn' as const, blobKeys };
  });
  if (outcome.kind !== 'withdrawn') return outcome;
  // If a blob cannot be deleted now, the nightly sweep deletes it.
  for (const key of outcome.blobKeys) await blobs.delete(key).catch(() => {});
  return { kind: 'withdrawn' };
}
