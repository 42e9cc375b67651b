import type { AgentEvent } from '@runyard/contract/runs/agent-events';
import { count } from '../../../platform/metrics/record.ts';
import { afterCommit, type Queryable } from '../../../platform/store/database/database.ts';
import {
  boolean,
  defineStatement,
  float,
  integer,
  json,
  nullable,
  numeric,
  text,
  uuid,
} from '../../../platform/store/database/statement.ts';
import { redactorOf, type SealedValue } from '../../../team/redaction/agent-text.ts';
import type { HeldTexts } from '../../../team/redaction/redact-events.ts';
import { type SealedSecrets, sealedSecretsOf, toSealedValues } from '../../../team/stored-secrets/run-secrets.ts';
import { readLastStepId } from '../../conversations/stored-events.ts';
import type { ExecutionDeps } from '../../executions/deps.ts';
import { storeBaseCommits } from '../../executions/fresh-checks/base-commits.ts';
import { isFreshCheck } from '../../executions/fresh-checks/fresh-checks.ts';
import { withHeldActions } from '../../executions/held-actions/held-actions.ts';
import { blockRun } from '../../executions/idle/debug-window.ts';
import type { Phase } from '../../executions/phases.ts';
import { isAttempt } from '../../executions/run-tokens/attempt.ts';
import type { RunIdentity } from '../../executions/run-tokens/sessions.ts';
import { beginCheckpoint, keepUnchangedCheckpoint } from '../../executions/saved-state.ts';
import { countDropped, storeAgentBatch, storeAgentEvents } from '../../executions/timeline/store-agent-events.ts';
import { addSandboxOfAgent } from '../../executions/timeline/worker-reports.ts';
import { beginTurnWithFollowup } from '../../executions/transitions/record-finished-turn.ts';
import { claim, start } from '../../executions/transitions/transitions.ts';
import { bytesOfTeam, roomOf } from '../../files/stored-bytes.ts';
import {
  type FollowupOrigin,
  findFollowupOfTurn,
  readFollowupOrigins,
  takeFollowup,
} from '../../runs/follow-ups/take-followups.ts';
import { enqueueProgress } from '../../subscriptions/channels.ts';
import { hasEarlierFiles } from '../task/files-of-task.ts';
import { fullConversationRows } from './event-rows.ts';
import { type EventAction, planAgentEvents } from './plan-agent-events.ts';

/**
 * Locks the run, then the execution. Both rows have their latest values once the locks are held: if PostgreSQL has to wait for the lock of
 * a row, it reads the row again.
 */
const lockForAgent = defineStatement({
  name: 'lock_run_and_execution_of_agent',
  text: `
    SELECT r.event_bytes, r.transcript_bytes, r.dropped_events, r.dropped_lines, r.assignment_id,
      (q.config->>'idle_timeout_minutes')::float8 * 60 AS idle_seconds, e.phase, e.last_agent_seq, e.redaction_tails,
      e.sandbox IS NULL AS "lacksSandbox", ${isFreshCheck('r.id')} AS is_check, ${sealedSecretsOf('r.id')} AS sealed, ${bytesOfTeam('r.team_id')} AS stored
    FROM runs r JOIN run_requests q ON q.run_id = r.id JOIN executions e ON e.run_id = r.id
    WHERE r.id = $1 AND e.id = $2 AND ${isAttempt('e', '$3')} FOR NO KEY UPDATE OF r, e`,
  row: {
    event_bytes: integer,
    transcript_bytes: integer,
    dropped_events: integer,
    dropped_lines: integer,
    assignment_id: nullable(uuid),
    /** NULL if the run's configuration does not set it. */
    idle_seconds: nullable(float),
    phase: text<Phase>(),
    last_agent_seq: integer,
    redaction_tails: json<HeldTexts>(),
    /** True if the worker has not reported the sandbox of the execution yet. */
    lacksSandbox: boolean,
    is_check: boolean,
    sealed: json<SealedSecrets>(),
    stored: numeric,
  },
});

/** `superseded`: the execution has ended or was assigned again, so the agent must stop. */
export type ApplyOutcome = { readonly acknowledged: number } | 'superseded';

/**
 * The outcome inside of a transaction. `grantedSecrets`: the values that the sandboxes of the run got. They are read after the agent has
 * sent its request, so they include every value that the request may contain.
 */
type ApplyOutcomeWithin =
  | { readonly acknowledged: number; readonly grantedSecrets: readonly SealedValue[] }
  | 'superseded';

/**
 * Applies the events that were not applied before, in order, and records the acknowledgement in the same transaction. So an event that is
 * sent twice counts only once. Events after a gap in the numbers are not applied: the agent sends them again. After a cancel the agent's
 * last events are still stored.
 */
export async function applyAgentEvents(
  deps: ExecutionDeps,
  session: RunIdentity,
  events: readonly AgentEvent[],
): Promise<ApplyOutcome> {
  const outcome = await deps.db.transaction((tx) => applyAgentEventsWithin(deps, tx, session, events));
  return outcome === 'superseded' ? outcome : { acknowledged: outcome.acknowledged };
}

/** Applies events like `applyAgentEvents`, but in the caller's transaction. Locks the rows of the run and the execution. */
export async function applyAgentEventsWithin(
  deps: ExecutionDeps,
  tx: Queryable,
  session: RunIdentity,
  events: readonly AgentEvent[],
): Promise<ApplyOutcomeWithin> {
  const { runId, executionId } = session;
  const [row] = await tx.query(lockForAgent, [runId, executionId, session.tokenHash]);
  if (!row) return 'superseded';
  const { phase, last_agent_seq: lastSeq, redaction_tails: heldTexts } = row;
  const grantedSecrets = toSealedValues(row.sealed);
  const room = roomOf(deps, Number(row.stored));
  const plan = planAgentEvents({
    events: await withHeldActions(tx, runId, await nameAuthors(tx, session, events)),
    execution: { phase, lastSeq, heldTexts },
    run: row,
    limits: deps.limits,
    room,
    redactor: redactorOf(deps, { token: session.token, grantedSecrets }),
    now: new Date(),
  });
  if (plan === undefined) return { acknowledged: lastSeq, grantedSecrets };
  const { acknowledged, transcript, added } = plan;
  if (!row.is_check)
    countChecks(
      tx,
      events.filter(({ seq }) => seq > lastSeq && seq <= acknowledged),
    );
  const last = plan.actions.at(-1);
  const ending = last?.kind === 'store_events' ? last : undefined;
  for (const action of ending ? plan.actions.slice(0, -1) : plan.actions)
    await carryOut(deps, tx, { session, idleSeconds: row.idle_seconds, lacksSandbox: row.lacksSandbox }, action);
  await countDropped(tx, runId, added);
  await storeAgentBatch(
    tx,
    session,
    ending ?? { rows: [], bytes: 0 },
    { lines: transcript, countedBytes: added.transcriptBytes },
    {
      lastSeq: acknowledged,
      heldTexts: plan.heldTexts,
      leaseSeconds: phase === 'stopping' ? 0 : deps.timing.leaseSeconds,
    },
  );
  const isNew = ({ seq }: AgentEvent): boolean => seq > lastSeq && seq <= acknowledged;
  if (events.some((event) => event.type === 'notice' && event.name === 'plan' && isNew(event)))
    await enqueueProgress(tx, runId);
  return { acknowledged, grantedSecrets };
}

/** Counts the checks that have ended, when the transaction commits. */
function countChecks(tx: Queryable, events: readonly AgentEvent[]): void {
  const ended = events.filter((event) => event.type === 'check_finished');
  if (ended.length === 0) return;
  afterCommit(tx, () => {
    for (const { state, check_run_id: id } of ended)
      count('runyard_run_checks_total', { sandbox: id === undefined ? 'own' : 'fresh', outcome: state });
  });
}

/** Executes one action of a plan. */
async function carryOut(
  deps: ExecutionDeps,
  tx: Queryable,
  run: { readonly session: RunIdentity; readonly idleSeconds: number | null; readonly lacksSandbox: boolean },
  action: EventAction,
): Promise<void> {
  const { session, idleSeconds } = run;
  const { runId, executionId } = session;
  switch (action.kind) {
    case 'store_events':
      return await storeAgentEvents(tx, session, action);
    case 'report_full_conversation': {
      const stepId = action.stepId ?? (await readLastStepId(tx, runId));
      const rows = fullConversationRows(deps.limits, {
        occurredAt: action.occurredAt,
        stepId,
        reached: action.reached,
      });
      const placed = rows.map((row, position) => JSON.stringify({ position, ...row }));
      return await storeAgentEvents(tx, session, { rows: placed, bytes: 0 });
    }
    case 'take_follow_up':
      await beginTurnWithFollowup(tx, executionId);
      return await takeFollowup(tx, session, action.followUpId);
    case 'start_run':
      return await startRun(deps, tx, run, action);
    case 'mark_checkpoint': {
      const { number, state, turn, done_blocks: done = 0 } = action.checkpoint;
      if (state === 'begun') return await beginCheckpoint(tx, { executionId, number, done });
      return await keepUnchangedCheckpoint(tx, { executionId, number, turn });
    }
    case 'block_run':
      await blockRun(deps, tx, { runId, executionId, request: action.request, idleSeconds });
  }
}

/**
 * Starts the run, and claims the assignment first if the worker's claim has not arrived yet: the agent's event proves that the worker took
 * the assignment.
 */
async function startRun(
  deps: ExecutionDeps,
  tx: Queryable,
  { session, lacksSandbox }: { readonly session: RunIdentity; readonly lacksSandbox: boolean },
  { assignmentId, harness, modelId, baseCommits }: Extract<EventAction, { kind: 'start_run' }>,
): Promise<void> {
  const { runId, executionId } = session;
  const target = { runId, executionId };
  if (assignmentId !== undefined) {
    await claim(tx, { ...target, args: { assignment_id: assignmentId, lease_seconds: deps.timing.leaseSeconds } });
  }
  // Add the sandbox to the timeline before the start of the agent, so that the events have this order.
  if (lacksSandbox) await addSandboxOfAgent(tx, target);
  const commits = baseCommits === undefined ? {} : { base_commits: baseCommits };
  const isStarted = await start(tx, { ...target, payload: { harness, model_id: modelId, ...commits } });
  // In the files of an earlier sandbox, programs of its harness may run before the agent reports.
  if (isStarted && baseCommits !== undefined && !(await hasEarlierFiles(tx, session)))
    await storeBaseCommits(tx, runId, baseCommits);
}

/**
 * Adds to each decision the author of the follow-up that decided the request, and to the beginning of a turn the author and the mode of its
 * follow-up. They come from the service's records; what the agent states is ignored. Sends no query if no event needs one.
 */
async function nameAuthors(
  tx: Queryable,
  session: Pick<RunIdentity, 'runId' | 'teamId' | 'executionId'>,
  events: readonly AgentEvent[],
): Promise<readonly AgentEvent[]> {
  let ofTurn = events.some(({ type }) => type === 'turn_started') ? await findFollowupOfTurn(tx, session) : undefined;
  const followups = events.map((event) => {
    if (event.type === 'follow_up_taken') ofTurn = event.follow_up_id;
    return event.type === 'decided' ? event.follow_up_id : event.type === 'turn_started' ? ofTurn : undefined;
  });
  const ids = followups.filter((id) => id !== undefined);
  const origins = ids.length === 0 ? new Map<string, never>() : await readFollowupOrigins(tx, session, ids);
  return events.map((event, index) => {
    const origin: FollowupOrigin | undefined = origins.get(followups[index] ?? '');
    if (event.type === 'turn_started') {
      const { sent_by: _told, mode: _mode, ...turn } = event;
      return { ...turn, ...(origin ? { sent_by: origin.by } : {}), ...(origin?.mode ? { mode: origin.mode } : {}) };
    }
    if (event.type !== 'decided') return event;
    const { answered_by: _told, ...decided } = event;
    if (origin === undefined) return decided;
    return { ...decided, by: origin.by.type === 'user' ? 'person' : 'agent', answered_by: origin.by };
  });
}
