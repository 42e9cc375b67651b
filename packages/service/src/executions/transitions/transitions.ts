/** Every state change of a run but its creation, its assignment and its retry. No other statement writes `runs.state`. */
import { defineTransition } from './transition.ts';

/** So long from now, by a limit of the run's team. */
const within = (limit: 'max_setup_seconds' | 'max_instance_runtime_seconds') =>
  `clock_timestamp() + make_interval(secs => (SELECT ${limit} FROM teams WHERE teams.id = moved.team_id))`;
const leaseFromArgs = "clock_timestamp() + make_interval(secs => (args->>'lease_seconds')::float8)";
const stopDeadline = "clock_timestamp() + make_interval(secs => (args->>'stop_seconds')::float8)";

/** PENDING → CLAIMED: the worker took the assignment. Provisioning has its own deadline from here. `args: {assignment_id, lease_seconds}` */
export const claim = defineTransition({
  name: 'claim',
  from: ['PENDING'],
  to: 'CLAIMED',
  event: 'oz_run_claimed',
  guard: "runs.assignment_id = (args->>'assignment_id')::uuid",
  run: 'assignment_id = NULL',
  execution: `phase = 'claimed', claimed_at = clock_timestamp(), claim_deadline = NULL, lease_until = ${leaseFromArgs},
    deadline_at = ${within('max_setup_seconds')}`,
});

/**
 * What the agent of the attempt began is not the next one's: its events begin with 1 again, and what it announced cannot be
 * uploaded any more. Blobs that no row names now are found by the sweep.
 */
const forgetAttempt = `, lines AS (
  DELETE FROM transcript_chunks USING moved WHERE execution_id = $2
), files AS (
  DELETE FROM artifacts USING moved WHERE artifacts.run_id = moved.id AND artifacts.execution_id = $2 AND NOT artifacts.is_ready
), snapshot AS (
  DELETE FROM snapshots USING moved WHERE snapshots.run_id = moved.id AND snapshots.execution_id = $2
)`;

/** PENDING → QUEUED: rejected, not claimed in time, or the connection dropped. The next attempt has another run token. `args: {assignment_id}` */
export const requeue = defineTransition({
  name: 'requeue',
  from: ['PENDING'],
  to: 'QUEUED',
  event: null,
  wakesQueue: true,
  guard: "runs.assignment_id = (args->>'assignment_id')::uuid",
  run: 'assignment_id = NULL',
  execution: `phase = 'queued', available_at = clock_timestamp(), token_hash = NULL, connection_id = NULL,
    worker_id = NULL, worker_instance = NULL, claim_deadline = NULL, assigned_at = NULL, agent_seen_at = NULL, sandbox = NULL,
    last_agent_seq = 0, redaction_tails = '{}', transcript_bytes = 0, finished_turns = 0, interrupted_turn = NULL,
    memory_blob = NULL, memory_turn = NULL, memory_request = NULL, workspace_turn = NULL, workspace_blob = NULL,
    workspace_bytes = NULL, workspace_sha256 = NULL, workspace_session = NULL`,
  further: forgetAttempt,
});

/** CLAIMED → INPROGRESS: the agent is at work on the prompt; the run's one deadline counts from here. */
export const start = defineTransition({
  name: 'start',
  from: ['CLAIMED'],
  to: 'INPROGRESS',
  event: 'agent_started',
  run: 'started_at = coalesce(runs.started_at, clock_timestamp())',
  execution: `phase = 'running', started_at = clock_timestamp(),
    deadline_at = ${within('max_instance_runtime_seconds')}`,
});

/** The turn has ended with its sandbox, which goes within `args.stop_seconds`. */
const stoppingFor = (reason: 'finished' | 'ordered') =>
  `phase = 'stopping', stop_reason = '${reason}', finished_at = clock_timestamp(), deadline_at = NULL, idle_until = NULL,
  stop_deadline = ${stopDeadline}`;
/** The agent reported its end, and leaves by itself. */
const finishing = stoppingFor('finished');
/** It is killed then, whatever its agent does. */
const ordered = stoppingFor('ordered');
/** There is no sandbox, or none any more. */
const over = "phase = 'ended', finished_at = clock_timestamp(), ended_at = clock_timestamp()";

const waits = "(args->>'idle_seconds')::float8 > 0";
/** The turn has ended: its agent waits for `args.idle_seconds` for a follow-up, holding no slot; where that is 0, it leaves. */
const resting = `finished_at = clock_timestamp(), deadline_at = NULL, awaiting_until = NULL,
  phase = CASE WHEN ${waits} THEN 'idle' ELSE 'stopping' END,
  idle_until = CASE WHEN ${waits} THEN clock_timestamp() + make_interval(secs => (args->>'idle_seconds')::float8) END,
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

/** INPROGRESS → BLOCKED: the agent waits for a person, which is no run time. `args: {request, idle_seconds}`, of which the last is more than 0 */
export const block = defineTransition({
  name: 'block',
  from: ['INPROGRESS'],
  to: 'BLOCKED',
  event: 'oz_run_blocked',
  request: "args->'request'",
  execution: resting,
});

/** SUCCEEDED, BLOCKED → INPROGRESS: a follow-up for an agent that waits. The deadline counts anew. The caller holds the idle execution's row. */
export const resume = defineTransition({
  name: 'resume',
  from: ['SUCCEEDED', 'BLOCKED'],
  to: 'INPROGRESS',
  event: 'followup_received',
  execution: `phase = 'running', idle_until = NULL, finished_at = NULL, wanted_at = clock_timestamp(),
    idle_seconds = idle_seconds + extract(epoch FROM clock_timestamp() - executions.finished_at),
    deadline_at = ${within('max_instance_runtime_seconds')}`,
});

/** → FAILED: a user error, or the agent itself failed at the task. From BLOCKED where its harness ended before the answer came. */
export const fail = defineTransition({
  name: 'fail',
  from: ['CLAIMED', 'INPROGRESS', 'BLOCKED'],
  to: 'FAILED',
  event: 'oz_run_failed',
  execution: finishing,
});

/** → FAILED: the setup failed. The sandbox stays for `args.idle_seconds`, that people can look at it; where that is 0, the agent leaves. */
export const failSetup = defineTransition({
  name: 'fail_setup',
  from: ['CLAIMED', 'INPROGRESS'],
  to: 'FAILED',
  event: 'oz_run_failed',
  execution: resting,
});

/** → ERROR: a platform error that is not (or no longer) retried, reported by the agent. */
export const err = defineTransition({
  name: 'err',
  from: ['CLAIMED', 'INPROGRESS', 'BLOCKED'],
  to: 'ERROR',
  event: 'oz_run_errored',
  execution: finishing,
});

/** → ERROR with the sandbox already gone: its worker told of its end or was lost. */
export const errEnded = defineTransition({
  name: 'err_ended',
  from: ['CLAIMED', 'INPROGRESS'],
  to: 'ERROR',
  event: 'oz_run_errored',
  execution: `${over}, deadline_at = NULL`,
});

/** CLAIMED → ERROR: the setup's deadline passed. Not from INPROGRESS, where another deadline counts. */
export const expireSetup = defineTransition({
  name: 'expire_setup',
  from: ['CLAIMED'],
  to: 'ERROR',
  event: 'oz_run_errored',
  execution: ordered,
});

/** INPROGRESS → ERROR: the run's deadline passed. While BLOCKED there is none. */
export const expireRun = defineTransition({
  name: 'expire_run',
  from: ['INPROGRESS'],
  to: 'ERROR',
  event: 'oz_run_errored',
  execution: ordered,
});

/** QUEUED → ERROR: no worker took it within the team's `queue_ttl_hours`. */
export const expireQueued = defineTransition({
  name: 'expire_queued',
  from: ['QUEUED'],
  to: 'ERROR',
  event: 'oz_run_errored',
  execution: over,
});

/** Of a run that others are below: they follow where `args.cascades` says so, those that are PENDING in a later sweep. */
const cascade = `cascade_at = CASE WHEN (args->>'cascades')::boolean AND EXISTS (
  SELECT FROM run_facets f WHERE f.team_id = runs.team_id AND f.facet = 'ancestor:' || runs.id)
  THEN clock_timestamp() ELSE runs.cascade_at END`;

/** QUEUED → CANCELLED: nothing was started. `args: {cascades}` */
export const cancelQueued = defineTransition({
  name: 'cancel_queued',
  from: ['QUEUED'],
  to: 'CANCELLED',
  event: 'oz_run_cancelled',
  run: cascade,
  execution: over,
});

/** CLAIMED, INPROGRESS → CANCELLED in the record at once; the sandbox is ended after `args.stop_seconds`. `args: {stop_seconds, cascades}` */
export const cancelLive = defineTransition({
  name: 'cancel_live',
  from: ['CLAIMED', 'INPROGRESS'],
  to: 'CANCELLED',
  event: 'oz_run_cancelled',
  run: cascade,
  execution: ordered,
});

const isGone = "executions.phase = 'ended'";
/** BLOCKED → CANCELLED: the same, but that its sandbox may be gone. The time that it waited is no run time. */
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
