/**
 * Actions that a rule of the run's configuration (`approval_rules`) matches, and that the gateway or the proxy holds until a person decides.
 * The agent of the run asks the person, but the service writes the request, and only the service knows the answer that counts. So the
 * sandbox can neither show another action than the held one, nor use an approval for another action.
 */
import { randomUUID } from 'node:crypto';
import { maxHeldActions } from '@runyard/contract/limits';
import type { AgentEvent } from '@runyard/contract/runs/agent-events';
import type { ApprovalRule, HeldBy } from '@runyard/contract/runs/approval-rules';
import type { AgentRequest, AllowFor, ApprovalPolicy, Decision } from '@runyard/contract/runs/approvals';
import type { Database, Queryable } from '../../../platform/store/database/database.ts';
import { defineStatement, json, nullable, text, uuid } from '../../../platform/store/database/statement.ts';
import type { ExecutionDeps } from '../deps.ts';
import type { OpenRequest } from '../idle/debug-window.ts';
import { tellAgent } from '../notices.ts';
import { lockWorkingAttempt } from '../run-tokens/attempt.ts';
import type { RunSession } from '../run-tokens/sessions.ts';
import { waitForRuns } from '../wait-for-runs.ts';

/** An action that a rule matches. */
export interface HeldAction {
  readonly heldBy: HeldBy;
  /** Exactly this action, as one text: an approval is valid for no other action. */
  readonly subject: string;
  /** The actions that an approval for the rest of the run allows, in words. An approval for these words allows each action with them. */
  readonly restOfRun: string;
  readonly title: string;
  readonly action: Pick<NonNullable<AgentRequest['action']>, 'name' | 'category' | 'input'>;
}

/** Decision about a held action. `refused`: the action is denied and no person is asked; `reason` says why. */
export type Hold =
  | { readonly kind: 'allowed' }
  | { readonly kind: 'waiting'; readonly id: string }
  | { readonly kind: 'refused'; readonly reason: string };

/**
 * Time for which an action waits for the answer before it is refused. Proxies often end a request without an answer after 60 seconds.
 */
export const holdMs = 50_000;

const readRulesOfRun = defineStatement({
  name: 'read_approval_rules_of_run',
  text: `SELECT config->>'approval_policy' AS policy, config->'approval_rules' AS rules FROM run_requests WHERE run_id = $1`,
  row: { policy: nullable(text<ApprovalPolicy>()), rules: nullable(json<readonly ApprovalRule[]>()) },
});

/** Returns the rules of a run. A run without rules holds no action. */
export async function readApprovalRules(db: Queryable, runId: string) {
  const [row] = await db.query(readRulesOfRun, [runId]);
  return { policy: row?.policy ?? undefined, rules: row?.rules ?? [] };
}

/** An approval is used once, and within an hour, so that no old approval is left for a later moment. */
const use = defineStatement({
  name: 'use_approval_of_held_action',
  text: `
    WITH used AS (
      UPDATE held_actions SET state = 'used'
      WHERE id = (SELECT id FROM held_actions WHERE run_id = $1 AND held_by = $2 AND subject = $3 AND state = 'approved'
        AND decided_at > clock_timestamp() - interval '1 hour' LIMIT 1)
      RETURNING id)
    SELECT FROM used UNION ALL
    SELECT FROM held_actions WHERE run_id = $1 AND held_by = $2 AND rest_of_run = $4 AND state = 'approved_for_run' LIMIT 1`,
  row: {},
});

const hold = defineStatement({
  name: 'hold_action',
  text: `
    WITH counted AS (SELECT count(*) AS n, coalesce(max(number), 0) + 1 AS next FROM held_actions WHERE run_id = $1),
    again AS (
      UPDATE held_actions h SET number = counted.next, execution_id = $5, tried_until = clock_timestamp() + make_interval(secs => $8)
      FROM counted WHERE h.run_id = $1 AND h.held_by = $2 AND h.subject = $3 AND h.state = 'waiting'
      RETURNING h.id),
    added AS (
      INSERT INTO held_actions (id, run_id, execution_id, number, held_by, subject, rest_of_run, request, tried_until)
      SELECT $6, $1, $5, next, $2, $3, $4, $7, clock_timestamp() + make_interval(secs => $8) FROM counted
      WHERE n < ${maxHeldActions} AND NOT EXISTS (SELECT FROM again)
      RETURNING id)
    SELECT id, ${tellAgent('$1::uuid')} FROM (SELECT id FROM again UNION ALL SELECT id FROM added) held`,
  row: { id: uuid },
});

/**
 * Uses up an approval of the action, or holds the action: the agent of the run then asks a person. The caller has locked the run.
 */
export async function takeApproval(
  tx: Queryable,
  { runId, executionId }: Pick<RunSession, 'runId' | 'executionId'>,
  policy: ApprovalPolicy | undefined,
  { heldBy, subject, restOfRun, title, action }: HeldAction,
): Promise<Hold> {
  if (policy === 'auto-deny')
    return { kind: 'refused', reason: `the approval policy of this run is auto-deny, and refuses ${restOfRun}` };
  if ((await tx.query(use, [runId, heldBy, subject, restOfRun])).length > 0) return { kind: 'allowed' };
  const request = JSON.stringify({ title, action });
  const values = [runId, heldBy, subject, restOfRun, executionId, randomUUID(), request, holdMs / 1000];
  const [held] = await tx.query(hold, values);
  return held === undefined
    ? { kind: 'refused', reason: `the run has asked about ${maxHeldActions} such actions, which is the maximum` }
    : { kind: 'waiting', id: held.id };
}

/** Like `takeApproval`, in a transaction of its own. Throws `AttemptOver`. */
export async function takeApprovalOfAttempt(
  db: Database,
  session: RunSession,
  policy: ApprovalPolicy | undefined,
  action: HeldAction,
): Promise<Hold> {
  return await db.transaction(async (tx) => {
    await lockWorkingAttempt(tx, session);
    return await takeApproval(tx, session, policy, action);
  });
}

const readState = defineStatement({
  name: 'read_state_of_held_action',
  text: "SELECT state FROM held_actions WHERE id = $1 AND state <> 'waiting'",
  row: { state: text<'approved' | 'approved_for_run' | 'denied' | 'used'>() },
});

const endTry = defineStatement({
  name: 'end_try_of_held_action',
  text: 'UPDATE held_actions SET tried_until = clock_timestamp() WHERE id = $1',
  row: {},
});

/**
 * Waits until a person has decided about a held action. Returns false if the person denied it; undefined if there is no answer yet, or
 * `signal` aborts.
 */
export async function waitForApproval(
  { db, notices }: Pick<ExecutionDeps, 'db' | 'notices'>,
  runId: string,
  id: string,
  signal: AbortSignal,
  waitMs = holdMs,
): Promise<boolean | undefined> {
  const state = await waitForRuns(
    notices,
    { runIds: () => [runId], waitMs, signal },
    async () => (await db.query(readState, [id]))[0]?.state,
  );
  if (state === undefined) await db.query(endTry, [id]);
  return state === undefined ? undefined : state !== 'denied';
}

/** SQL: the held actions about which the agent of the execution has to ask, as JSON; those after the number `after`. */
export const waitingHeldActions = ({ runId, executionId, after }: Readonly<Record<string, string>>): string => `
  (SELECT jsonb_agg(jsonb_build_object('number', h.number, 'request', h.request || jsonb_build_object('request_id', h.id,
      'kind', 'permission', 'rest_of_run', h.rest_of_run)) ORDER BY h.number)
   FROM (SELECT * FROM held_actions WHERE run_id = ${runId} AND execution_id = ${executionId} AND state = 'waiting'
     AND number > ${after}::bigint ORDER BY number LIMIT 20) h)`;

/** SQL: the request of the follow-up `f` approved a held action, and no program of the sandbox waits for the answer any more. */
export const isLateApproval = (f: string): string => `
  EXISTS (SELECT FROM held_actions h WHERE h.run_id = ${f}.run_id AND h.id::text = ${f}.answers AND h.state IN ('approved', 'approved_for_run')
    AND h.tried_until < clock_timestamp())`;

const settle = defineStatement({
  name: 'settle_held_action',
  text: `
    UPDATE held_actions SET state = $3, decided_at = clock_timestamp()
    WHERE run_id = $1 AND state = 'waiting' AND (id = $2::uuid OR $3 = 'approved_for_run'
      AND (held_by, rest_of_run) = (SELECT held_by, rest_of_run FROM held_actions WHERE id = $2::uuid))`,
  row: {},
});

/** Records a person's answer to the request about a held action. A message without a decision denies the action. */
export async function settleHeldAction(
  tx: Queryable,
  { runId, id }: { readonly runId: string; readonly id: string },
  answer: { readonly decision?: Decision | undefined; readonly allow_for?: AllowFor | undefined },
): Promise<void> {
  const approved = answer.allow_for === 'run' ? 'approved_for_run' : 'approved';
  await tx.query(settle, [runId, id, answer.decision === 'approve' ? approved : 'denied']);
}

const readHeld = defineStatement({
  name: 'read_waiting_held_actions',
  text: `
    SELECT id, held_by, rest_of_run, request FROM held_actions
    WHERE run_id = $1 AND id::text = ANY($2::text[]) AND state = 'waiting'`,
  row: {
    id: uuid,
    held_by: text<HeldAction['heldBy']>(),
    rest_of_run: text(),
    request: json<Pick<HeldAction, 'title' | 'action'>>(),
  },
});

/**
 * Replaces the requests about held actions by the service's own record, because the agent that reports a request is in the sandbox.
 */
export async function withHeldActions(
  tx: Queryable,
  runId: string,
  events: readonly AgentEvent[],
): Promise<readonly AgentEvent[]> {
  const ids = events.flatMap((event) => (event.type === 'blocked' ? event.request.request_id : []));
  const held = ids.length === 0 ? [] : await tx.query(readHeld, [runId, ids]);
  if (held.length === 0) return events;
  return events.map((event) => {
    const row = event.type === 'blocked' && held.find(({ id }) => id === event.request.request_id);
    if (event.type !== 'blocked' || !row) return event;
    const { title, action } = row.request;
    const { resume } = event.request;
    const { id, fingerprint } = event.request.action ?? {};
    const request: Omit<OpenRequest, 'asked_at'> = {
      request_id: row.id,
      kind: 'permission',
      title,
      rest_of_run: row.rest_of_run,
      action: { ...action, ...(id ? { id } : {}), ...(fingerprint ? { fingerprint } : {}) },
      held: row.held_by,
      ...(resume === undefined ? {} : { resume }),
    };
    return { ...event, request };
  });
}

const readAllowed = defineStatement({
  name: 'read_requests_approved_for_run',
  text: `SELECT request FROM followups WHERE run_id = $1 AND allow_for = 'run' ORDER BY position DESC LIMIT 100`,
  row: { request: json<OpenRequest>() },
});

/** Returns the requests of the run that a person approved for the rest of the run. */
export async function readAllowedForRun(db: Queryable, runId: string): Promise<readonly AgentRequest[]> {
  const rows = await db.query(readAllowed, [runId]);
  return rows.map(({ request: { resume: _, held: _held, mode: _mode, ...request } }) => request);
}
