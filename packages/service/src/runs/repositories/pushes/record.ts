/** Records the pushes of a run in a table, in the run's timeline, and in the audit log of the run's team. */
import type { Repository } from '@runyard/contract/environments/repositories';
import { maxBranchesOfPush, maxPushedBranches, maxRefusedPushesShown } from '@runyard/contract/limits';
import type { ApprovalRule } from '@runyard/contract/runs/approval-rules';
import type { ApprovalPolicy } from '@runyard/contract/runs/approvals';
import type { Database, Queryable } from '../../../platform/store/database/database.ts';
import { defineStatement, integer, text } from '../../../platform/store/database/statement.ts';
import { recordChange } from '../../../team/access/audit/record.ts';
import { type ServiceSecrets, withoutSecrets } from '../../../team/redaction/agent-text.ts';
import { takeApproval } from '../../executions/held-actions/held-actions.ts';
import { whyRepositoriesStay } from '../../executions/plan-mode.ts';
import { lockWorkingAttempt } from '../../executions/run-tokens/attempt.ts';
import type { RunSession } from '../../executions/run-tokens/sessions.ts';
import { appendTimelineEvent } from '../../executions/timeline/timeline.ts';
import { branchOf, decidePush, type PushFacts, type Refusals } from './decide.ts';
import { heldPushOf } from './held-push.ts';
import { isNone, type PushCommand } from './read-commands.ts';
import type { HostReport } from './report-status.ts';

/** A push from git. */
export interface Push extends Omit<PushFacts, 'own'> {
  readonly repository: Repository;
}

/** Approvals of the run that a push may need. */
interface PushApprovals {
  readonly policy: ApprovalPolicy | undefined;
  readonly rules: readonly ApprovalRule[];
}

/**
 * `forward`: the gateway may forward the push, which is recorded as sent; `numbers` are the numbers of its branches in the record.
 * `refused`: the gateway must forward nothing. `waiting`: a person has to approve the push; `id` is the id of the request.
 */
export type BegunPush =
  | { readonly kind: 'forward'; readonly numbers: readonly number[] }
  | { readonly kind: 'refused'; readonly refusals: Refusals }
  | { readonly kind: 'waiting'; readonly id: string };

const readCounts = defineStatement({
  name: 'count_pushed_branches',
  text: `
    SELECT coalesce(max(number), 0) AS last, count(*) FILTER (WHERE result = 'refused') AS refused
    FROM pushed_branches WHERE run_id = $1`,
  row: { last: integer, refused: integer },
});

const readPushed = defineStatement({
  name: 'read_pushed_branches',
  text: `
    SELECT branch, from_id, to_id FROM pushed_branches
    WHERE run_id = $1 AND repository = $2 AND result = 'pushed' AND branch = ANY($3::text[]) ORDER BY number`,
  row: { branch: text(), from_id: text(), to_id: text() },
});

const insert = defineStatement({
  name: 'insert_pushed_branches',
  text: `
    INSERT INTO pushed_branches (run_id, execution_id, repository, result, number, branch, from_id, to_id)
    SELECT $1, $2, $3, $4, $5 + each.position, each.branch, each.from_id, each.to_id
    FROM unnest($6::text[], $7::text[], $8::text[]) WITH ORDINALITY AS each (branch, from_id, to_id, position)`,
  row: {},
});

const setResults = defineStatement({
  name: 'set_results_of_pushed_branches',
  text: `
    UPDATE pushed_branches p SET result = each.result
    FROM unnest($2::int[], $3::text[]) AS each (number, result)
    WHERE p.run_id = $1 AND p.number = each.number AND p.result IN ('sent', 'unknown')`,
  row: {},
});

const nameOf = (ref: string): string => branchOf(ref) ?? ref;
const keyOf = ({ owner, repo }: Repository): string => `${owner}/${repo}`.toLowerCase();

/**
 * Returns the branches that the run created, each with the run's last commit on it. A branch is not included if another author pushed to
 * it later.
 */
async function readOwn(tx: Queryable, runId: string, { repository, commands }: Push): Promise<Map<string, string>> {
  const own = new Map<string, string>();
  const names = commands.map(({ ref }) => nameOf(ref));
  for (const { branch, from_id, to_id } of await tx.query(readPushed, [runId, keyOf(repository), names])) {
    if (isNone(from_id) || own.get(branch) === from_id) own.set(branch, to_id);
    else own.delete(branch);
  }
  return own;
}

type Results = ReadonlyMap<string, { readonly result: string; readonly reason?: string | undefined }>;

async function appendPush(
  tx: Queryable,
  service: ServiceSecrets,
  session: RunSession,
  { repository, commands }: Push,
  results: Results,
): Promise<void> {
  const branches = commands.slice(0, maxBranchesOfPush).map(({ ref, from, to }) => ({
    branch: nameOf(ref),
    ...(isNone(from) ? {} : { from }),
    ...(isNone(to) ? {} : { to }),
    ...results.get(ref),
  }));
  const payload = { repository: `${repository.owner}/${repository.repo}`, branches };
  await appendTimelineEvent(tx, {
    runId: session.runId,
    executionId: session.executionId,
    type: 'git_push',
    payload: withoutSecrets(service, session, payload),
  });
}

/**
 * Decides whether a push may be forwarded, and records the push, in one transaction under the lock of the run. So a cancelled run pushes
 * nothing, and two pushes of a run are decided one after another. Throws `AttemptOver`, `TooManyChanges`.
 */
export async function beginPush(
  { db, ...service }: ServiceSecrets & { readonly db: Database },
  session: RunSession,
  push: Push,
  { policy, rules }: PushApprovals = { policy: undefined, rules: [] },
): Promise<BegunPush> {
  return await db.transaction(async (tx) => {
    await lockWorkingAttempt(tx, session);
    const { repository, commands } = push;
    const counts = (await tx.query(readCounts, [session.runId]))[0] ?? { last: 0, refused: 0 };
    if (counts.last + Math.min(commands.length, maxBranchesOfPush) > maxPushedBranches) {
      const reason = `the run has pushed ${maxPushedBranches} times, which is the maximum`;
      return { kind: 'refused', refusals: new Map(commands.map(({ ref }) => [ref, reason])) };
    }
    const barred = await whyRepositoriesStay(tx, session.executionId);
    let refusals: Refusals =
      barred === undefined
        ? decidePush({ ...push, own: await readOwn(tx, session.runId, push) })
        : new Map(commands.map(({ ref }) => [ref, barred]));
    const held = refusals.size === 0 ? heldPushOf(rules, push) : undefined;
    if (held !== undefined) {
      const taken = await takeApproval(tx, session, policy, withoutSecrets(service, session, held));
      if (taken.kind === 'waiting') return taken;
      if (taken.kind === 'refused') refusals = new Map(commands.map(({ ref }) => [ref, taken.reason]));
    }
    const result = refusals.size > 0 ? 'refused' : 'sent';
    const recorded: readonly PushCommand[] = commands.slice(0, maxBranchesOfPush);
    await tx.query(insert, [
      session.runId,
      session.executionId,
      keyOf(repository),
      result,
      counts.last,
      recorded.map(({ ref }) => nameOf(ref)),
      recorded.map(({ from }) => from),
      recorded.map(({ to }) => to),
    ]);
    if (result === 'refused') {
      const results = new Map(Array.from(refusals, ([ref, reason]) => [ref, { result, reason }]));
      if (counts.refused < maxRefusedPushesShown) await appendPush(tx, service, session, push, results);
      return { kind: 'refused', refusals };
    }
    const author = { teamId: session.teamId, creator: session.executor, keyId: null, from: null };
    const name = `${repository.owner}/${repository.repo}`;
    const branches = recorded.map(({ ref, from, to }) => ({ branch: nameOf(ref), from, to }));
    await recordChange(tx, author, {
      action: 'repository.push',
      subject: { type: 'repository', uid: keyOf(repository), name },
      after: withoutSecrets(service, session, { run_id: session.runId, branches }),
    });
    return { kind: 'forward', numbers: recorded.map((_, index) => counts.last + index + 1) };
  });
}

/** Records an upload of Git LFS in the audit log, before the upload. Throws `AttemptOver`, `TooManyChanges`. */
export async function recordUpload(
  db: Database,
  session: RunSession,
  repository: Push['repository'],
  object: { readonly oid: string; readonly size: number },
): Promise<void> {
  await db.transaction(async (tx) => {
    await lockWorkingAttempt(tx, session);
    const author = { teamId: session.teamId, creator: session.executor, keyId: null, from: null };
    await recordChange(tx, author, {
      action: 'repository.upload',
      subject: { type: 'repository', uid: keyOf(repository), name: `${repository.owner}/${repository.repo}` },
      after: { run_id: session.runId, lfs_object: object.oid, size_bytes: object.size },
    });
  });
}

/**
 * Records the answer of the code host to a push that was forwarded. `report` is null if the host sent no report or an incomplete one.
 */
export async function endPush(
  { db, ...service }: ServiceSecrets & { readonly db: Database },
  session: RunSession,
  push: Push,
  numbers: readonly number[],
  report: HostReport | null,
): Promise<void> {
  const results = new Map<string, { result: string; reason?: string }>();
  for (const { ref } of push.commands) {
    const reason = report?.get(ref);
    if (reason === undefined) results.set(ref, { result: 'unknown' });
    else results.set(ref, reason === null ? { result: 'pushed' } : { result: 'rejected', reason });
  }
  await db.transaction(async (tx) => {
    const stored = push.commands.map(({ ref }) => results.get(ref)?.result);
    await tx.query(setResults, [session.runId, numbers, stored]);
    await appendPush(tx, service, session, push, results);
  });
}

const deleteRows = defineStatement({
  name: 'delete_pushed_branches_of_runs',
  text: 'DELETE FROM pushed_branches WHERE run_id = ANY($1::uuid[])',
  row: {},
});

/** Deletes the records of the pushes of these runs. */
export async function deletePushes(
  tx: Queryable,
  runIds: readonly string[],
): Promise<{ readonly blobKeys: readonly string[]; readonly isDone: boolean }> {
  await tx.query(deleteRows, [runIds]);
  return { blobKeys: [], isDone: true };
}
