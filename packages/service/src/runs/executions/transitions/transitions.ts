/**
 * Defines the state changes of a run that `defineTransition` can express. Other files also change states: `runs/runs/submit` inserts a run
 * as QUEUED, and `queue/assign.ts`, `relaunch.ts` and `continue.ts` change the state together with further rows. Only `runs/executions/`
 * updates `runs.state`: the check "one writer per table" of `bin/test` enforces that.
 */

import type { ErrorCode } from '@runyard/contract/wire/errors';
import { deleteTranscript } from '../../conversations/transcript-chunks.ts';
import type { ExecutionDeps } from '../deps.ts';
import { isBelow } from '../descendants.ts';
import { allowedSeconds, fromNow, workedSeconds } from '../time.ts';
import { defineTransition } from './transition.ts';

/** SQL: the time at which the setup reaches the limit of the run's team. */
const setupDeadline = fromNow('SELECT max_setup_seconds FROM teams WHERE teams.id = moved.team_id');
/** SQL: the time at which the run reaches its `max_duration_minutes` or the limit of its team, whichever is earlier. */
const workDeadline = fromNow(`least((SELECT max_instance_runtime_seconds FROM teams WHERE teams.id = moved.team_id),
  ${allowedSeconds('moved.id')} - ${workedSeconds('moved.id')})`);
const leaseFromArgs = fromNow("args->>'lease_seconds'");
const stopDeadline = fromNow("args->>'stop_seconds'");

/**
 * PENDING → CLAIMED: the worker takes the assignment, and the lease begins. From now on, the setup has a deadline. `args: {assignment_id,
 * lease_seconds}`
 */
export const claim = defineTransition({
  name: 'claim',
  from: ['PENDING'],
  to: 'CLAIMED',
  event: 'oz_run_claimed',
  guard: "runs.assignment_id = (args->>'assignment_id')::uuid",
  run: 'assignment_id = NULL',
  execution: `phase = 'claimed', claimed_at = clock_timestamp(), claim_deadline = NULL, lease_until = ${leaseFromArgs},
    deadline_at = ${setupDeadline}`,
});

/**
 * Deletes the rows that the agent of the attempt wrote, because the next agent numbers its events from 1 again and announces its own files.
 * The sweep of blobs deletes the blobs of the deleted rows.
 */
const deleteRowsOfAttempt = `, lines AS (
  ${deleteTranscript('$2', 'moved')}
), files AS (
  DELETE FROM artifacts USING moved WHERE artifacts.run_id = moved.id AND artifacts.execution_id = $2 AND NOT artifacts.is_ready
), snapshot AS (
  DELETE FROM snapshots USING moved WHERE snapshots.run_id = moved.id AND snapshots.execution_id = $2
)`;

/** PENDING → QUEUED: the worker rejected the assignment, did not claim it in time, or lost its connection. The next attempt has another run token. `args: {assignment_id}` */
export const requeue = defineTransition({
  name: 'requeue',
  from: ['PENDING'],
  to: 'QUEUED',
  event: null,
  wakesQueue: true,
  guard: "runs.assignment_id = (args->>'assignment_id')::uuid",
  run: 'assignment_id = NULL, in_sandbox = false',
  execution: `phase = 'queued', available_at = clock_timestamp(), token_hash = NULL, connection_id = NULL,
    worker_id = NULL, worker_instance = NULL, claim_deadline = NULL, assigned_at = NULL, agent_seen_at = NULL, sandbox = NULL,
    last_agent_seq = 0, redaction_tails = '{}', transcript_bytes = 0, finished_turns = 0, awaits_followup = false,
    interrupted_turn = NULL,
    memory_blob = NULL, memory_turn = NULL, memory_request = NULL, workspace_turn = NULL, workspace_blob = NULL,
    workspace_bytes = NULL, workspace_sha256 = NULL, workspace_session = NULL, workspace_seq = NULL,
    workspace_is_checkpoint = false, workspace_done = 0, workspace_at = NULL,
    checkpoint = NULL, checkpoint_seq = NULL, checkpoint_done = 0`,
  further: deleteRowsOfAttempt,
});

/** CLAIMED → INPROGRESS: the agent gives the prompt to the harness. The run's deadline counts from here. */
export const start = defineTransition({
  name: 'start',
  from: ['CLAIMED'],
  to: 'INPROGRESS',
  event: 'agent_started',
  run: 'started_at = coalesce(runs.started_at, clock_timestamp())',
  execution: `phase = 'running', started_at = clock_timestamp(),
    deadline_at = ${workDeadline}`,
});

/** The run has ended, and its sandbox has `args.stop_seconds` to end. */
const stoppingFor = (reason: 'finished' | 'ordered') =>
  `phase = 'stopping', stop_reason = '${reason}', finished_at = clock_timestamp(), deadline_at = NULL, idle_until = NULL,
  stop_deadline = ${stopDeadline}`;
/** The agent has reported the end of its work, and exits by itself. */
const finishing = stoppingFor('finished');
/** The worker kills the sandbox after `args.stop_seconds`, even if the agent still works. */
const ordered = stoppingFor('ordered');
/** SQL that ends an execution. It has no sandbox any more. */
const over = "phase = 'ended', finished_at = clock_timestamp(), ended_at = clock_timestamp()";

const waits = "(args->>'idle_seconds')::float8 > 0";
/**
 * The turn has ended. The agent waits for a follow-up for `args.idle_seconds` seconds and uses no slot. If `idle_seconds` is 0, the agent
 * exits.
 */
const resting = `finished_at = clock_timestamp(), deadline_at = NULL, awaiting_until = NULL,
  phase = CASE WHEN ${waits} THEN 'idle' ELSE 'stopping' END,
  idle_until = CASE WHEN ${waits} THEN ${fromNow("args->>'idle_seconds'")} END,
  stop_reason = CASE WHEN ${waits} THEN NULL ELSE 'finished' END,
  stop_deadline = CASE WHEN ${waits} THEN NULL ELSE ${stopDeadline} END`;

/** INPROGRESS → SUCCEEDED. `args: {idle_seconds, stop_seconds}` */
export const succeed = defineTransition({
  name: 'succeed',
  from: ['INPROGRESS'],
  to: 'SUCCEEDED',
  event: 'oz_run_done',
  execution: resting,
});

/**
 * INPROGRESS → BLOCKED: the agent waits for a person. The wait does not count as run time. `args: {request, idle_seconds}`, with
 * `idle_seconds` above 0
 */
export const block = defineTransition({
  name: 'block',
  from: ['INPROGRESS'],
  to: 'BLOCKED',
  event: 'oz_run_blocked',
  request: "args->'request'",
  execution: resting,
});

/**
 * SUCCEEDED, BLOCKED → INPROGRESS: a follow-up has arrived for an agent that waits. The run gets a new deadline. The caller has locked the
 * row of the idle execution.
 */
export const resume = defineTransition({
  name: 'resume',
  from: ['SUCCEEDED', 'BLOCKED'],
  to: 'INPROGRESS',
  event: 'followup_received',
  execution: `phase = 'running', idle_until = NULL, finished_at = NULL, wanted_at = clock_timestamp(),
    idle_seconds = idle_seconds + extract(epoch FROM clock_timestamp() - executions.finished_at),
    deadline_at = ${workDeadline}`,
});

/**
 * → FAILED: because of an error of the user, or because the agent could not do the task. The run was BLOCKED if the harness ended before
 * the answer to its question arrived.
 */
export const fail = defineTransition({
  name: 'fail',
  from: ['CLAIMED', 'INPROGRESS', 'BLOCKED'],
  to: 'FAILED',
  event: 'oz_run_failed',
  execution: finishing,
});

/**
 * → FAILED: the setup failed. The sandbox stays for `args.idle_seconds` seconds, so that people can examine it. If `idle_seconds` is 0, the
 * agent exits.
 */
export const failSetup = defineTransition({
  name: 'fail_setup',
  from: ['CLAIMED', 'INPROGRESS'],
  to: 'FAILED',
  event: 'oz_run_failed',
  execution: resting,
});

/** → ERROR: the agent reported a platform error, and the error is not retryable or no retries are left. */
export const err = defineTransition({
  name: 'err',
  from: ['CLAIMED', 'INPROGRESS', 'BLOCKED'],
  to: 'ERROR',
  event: 'oz_run_errored',
  execution: finishing,
});

/** → ERROR: there is no sandbox any more, because the worker reported its end or was lost. */
export const errEnded = defineTransition({
  name: 'err_ended',
  from: ['CLAIMED', 'INPROGRESS'],
  to: 'ERROR',
  event: 'oz_run_errored',
  run: 'in_sandbox = false',
  execution: `${over}, deadline_at = NULL`,
});

/** CLAIMED → FAILED: there is no sandbox, because no sandbox can meet the requirements of the run. */
export const failUnfit = defineTransition({
  name: 'fail_unfit',
  from: ['CLAIMED'],
  to: 'FAILED',
  event: 'oz_run_failed',
  run: 'in_sandbox = false',
  execution: `${over}, deadline_at = NULL`,
});

/**
 * CLAIMED → ERROR: the setup's deadline has passed. This change is not allowed in INPROGRESS, because another deadline applies in that
 * state.
 */
export const expireSetup = defineTransition({
  name: 'expire_setup',
  from: ['CLAIMED'],
  to: 'ERROR',
  event: 'oz_run_errored',
  execution: ordered,
});

/** INPROGRESS → ERROR: the run's deadline passed. A BLOCKED run has no deadline. */
export const expireRun = defineTransition({
  name: 'expire_run',
  from: ['INPROGRESS'],
  to: 'ERROR',
  event: 'oz_run_errored',
  execution: ordered,
});

/** CLAIMED, INPROGRESS → FAILED: the run used up a budget. `args: {stop_seconds}` */
export const exceedBudget = defineTransition({
  name: 'exceed_budget',
  from: ['CLAIMED', 'INPROGRESS'],
  to: 'FAILED',
  event: 'oz_run_failed',
  execution: ordered,
});

/** QUEUED → ERROR: no worker took the execution within the team's `queue_ttl_hours`. */
export const expireQueued = defineTransition({
  name: 'expire_queued',
  from: ['QUEUED'],
  to: 'ERROR',
  event: 'oz_run_errored',
  execution: over,
});

/**
 * If `args.cascades` is set, sets the mark `cascade_at` of a run with descendants: `cancel-descendants.ts` then cancels the descendants.
 */
const cascade = `cascade_at = CASE WHEN (args->>'cascades')::boolean AND EXISTS (
  SELECT FROM runs d WHERE ${isBelow('d', 'runs')})
  THEN clock_timestamp() ELSE runs.cascade_at END`;

/** QUEUED → CANCELLED: there is no sandbox yet. `args: {cascades}` */
export const cancelQueued = defineTransition({
  name: 'cancel_queued',
  from: ['QUEUED'],
  to: 'CANCELLED',
  event: 'oz_run_cancelled',
  run: cascade,
  execution: over,
});

/**
 * CLAIMED, INPROGRESS → CANCELLED: the state changes at once, and the sandbox is ended after `args.stop_seconds`. `args: {stop_seconds,
 * cascades}`
 */
export const cancelLive = defineTransition({
  name: 'cancel_live',
  from: ['CLAIMED', 'INPROGRESS'],
  to: 'CANCELLED',
  event: 'oz_run_cancelled',
  run: cascade,
  execution: ordered,
});

const isGone = "executions.phase = 'ended'";
/** BLOCKED → CANCELLED: like `cancelLive`, but the sandbox may have ended already. The time of the wait does not count as run time. */
export const cancelBlocked = defineTransition({
  name: 'cancel_blocked',
  from: ['BLOCKED'],
  to: 'CANCELLED',
  event: 'oz_run_cancelled',
  run: cascade,
  execution: `phase = CASE WHEN ${isGone} THEN 'ended' ELSE 'stopping' END,
    stop_reason = CASE WHEN ${isGone} THEN executions.stop_reason ELSE 'ordered' END,
    stop_deadline = CASE WHEN ${isGone} THEN executions.stop_deadline ELSE ${stopDeadline} END,
    idle_until = NULL, deadline_at = NULL`,
});

/** Ends a working run whose budget is used up. Does nothing if the run has changed meanwhile. */
export async function endOverBudget(
  deps: Pick<ExecutionDeps, 'db' | 'timing'>,
  { runId, executionId }: { readonly runId: string; readonly executionId: string },
  { code, message }: { readonly code: ErrorCode; readonly message: string },
): Promise<void> {
  await exceedBudget(deps.db, {
    runId,
    executionId,
    status: { message, code, retryable: false },
    payload: { message, error_code: code },
    args: { stop_seconds: deps.timing.cancelGraceSeconds },
  });
}
