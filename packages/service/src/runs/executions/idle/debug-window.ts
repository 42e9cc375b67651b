/**
 * Handles requests of an agent to a person, and the debug window: the time for which the sandbox of a failed setup stays, so that people
 * can examine the failure. During the window the run stays FAILED. Only its execution changes, under the lock of the run's row. A FAILED
 * run has an execution in the phase `idle` or `running` only during this window.
 */

import type { EnvironmentConfig } from '@runyard/contract/environments/environments';
import type { HeldBy } from '@runyard/contract/runs/approval-rules';
import type { AgentRequest, BlockedOn } from '@runyard/contract/runs/approvals';
import { shorten } from '@runyard/contract/wire/shorten';
import type { Queryable } from '../../../platform/store/database/database.ts';
import { boolean, defineStatement, json, nullable } from '../../../platform/store/database/statement.ts';
import { configOfRun } from '../../../team/environments/config-of-run.ts';
import { mayUse } from '../../../team/environments/may-use.ts';
import type { ExecutionDeps } from '../deps.ts';
import { tellAgent, tellQueue, tellReaders } from '../notices.ts';
import { isPlanning } from '../plan-mode.ts';
import { fromNow } from '../time.ts';
import { appendQuestionOfFailedRun } from '../timeline/timeline.ts';
import { block } from '../transitions/transitions.ts';

/**
 * The JSON of `runs.open_request` and `executions.debug_request`. It includes the parts of the request that only an agent needs, to
 * continue in another sandbox.
 */
export type OpenRequest = AgentRequest & {
  readonly asked_at: string;
  /** The part of the service that holds the action until the answer. Only the service sets this member. */
  readonly held?: HeldBy;
  /** Present if the agent asked in a turn with this mode. The answer continues the turn, so it has the same mode. */
  readonly mode?: 'plan';
};

const maxSentence = 400;

/**
 * Returns a text that describes the request to a person. If the title of the request has several lines, it begins on a new line. If it
 * has more than `maxSentence` characters, it is shortened.
 */
function noticeOf({ kind, title, action }: Pick<AgentRequest, 'kind' | 'title' | 'action'>): string {
  const text = title.trim();
  const shortText = shorten(text, maxSentence);
  const head =
    kind === 'question'
      ? 'The agent asks:'
      : `The agent asks for permission${action ? ` to use ${action.name.replace(/\s+/g, ' ')}` : ''}:`;
  const rest =
    shortText === text ? '' : `\n(These are the first ${shortText.length - 1} of ${text.length} characters.)`;
  return `${head}${text.includes('\n') ? '\n' : ' '}${shortText}${rest}`;
}

/** Returns the request as the API shows it, without the parts that only the agent needs. */
export function blockedOn(request: OpenRequest): BlockedOn {
  const { request_id, kind, title, options, action, asked_at, rest_of_run: restOfRun, held } = request;
  return {
    request_id,
    kind,
    title,
    ...(options ? { options } : {}),
    ...(action ? { action: { name: action.name, category: action.category, input: action.input } } : {}),
    ...(restOfRun === undefined ? {} : { rest_of_run: restOfRun }),
    ...(held ? { enforced_by: held } : {}),
    asked_at,
  };
}

/**
 * Blocks the run until a person answers: INPROGRESS → BLOCKED. In the debug window the run stays FAILED, and the question is added to the
 * timeline. Subscribers are notified in both cases. Returns false, and changes nothing, if no turn of the agent is in progress any more.
 */
export async function blockRun(
  deps: ExecutionDeps,
  tx: Queryable,
  input: {
    readonly runId: string;
    readonly executionId: string;
    readonly request: OpenRequest;
    /** The idle time in the run's configuration. For null and 0 the default applies, because a person needs time to answer the question. */
    readonly idleSeconds: number | null;
  },
): Promise<boolean> {
  const { runId, executionId } = input;
  const request = { ...input.request, ...((await isPlanning(tx, executionId)) ? { mode: 'plan' as const } : {}) };
  const message = noticeOf(request);
  const payload = { message, request: blockedOn(request) };
  const isBlocked = await block(tx, {
    runId,
    executionId,
    status: { message },
    payload,
    args: { request, idle_seconds: input.idleSeconds || deps.timing.idleSeconds },
  });
  if (isBlocked) return true;
  if (!(await blockDebugTurn(tx, { runId, executionId }, request))) return false;
  await appendQuestionOfFailedRun(tx, { runId, executionId, payload });
  return true;
}

const beginTurn = defineStatement({
  name: 'begin_debug_turn',
  text: `
    UPDATE executions e SET phase = 'running', idle_until = NULL, finished_at = NULL, wanted_at = clock_timestamp(), debug_request = NULL,
      idle_seconds = e.idle_seconds + extract(epoch FROM clock_timestamp() - e.finished_at),
      deadline_at = ${fromNow('SELECT max_instance_runtime_seconds FROM teams WHERE teams.id = e.team_id')}
    WHERE e.id = $1 AND e.phase = 'idle'
    RETURNING ${tellReaders('e.run_id')}, ${tellAgent('e.run_id')}`,
  row: {},
});

/** Begins a turn in the debug window: the execution takes a slot and has the maximum runtime. */
export async function beginDebugTurn(tx: Queryable, executionId: string): Promise<void> {
  await tx.query(beginTurn, [executionId]);
}

const endTurn = defineStatement({
  name: 'end_debug_turn',
  text: `
    UPDATE executions SET finished_at = clock_timestamp(), deadline_at = NULL, awaiting_until = NULL,
      phase = CASE WHEN $2::float8 > 0 THEN 'idle' ELSE 'stopping' END,
      idle_until = CASE WHEN $2::float8 > 0 THEN ${fromNow('$2')} END,
      stop_reason = CASE WHEN $2::float8 > 0 THEN NULL ELSE 'finished' END,
      stop_deadline = CASE WHEN $2::float8 > 0 THEN NULL ELSE ${fromNow('$3')} END
    WHERE id = $1 AND phase = 'running'
    RETURNING ${tellReaders('run_id')}, ${tellAgent('run_id')}, ${tellQueue('pool')}`,
  row: {},
});

/** Ends a turn in the debug window, with any result. Then a new wait begins, with the same duration as the wait after the failed setup. */
export async function endDebugTurn(
  deps: ExecutionDeps,
  tx: Queryable,
  target: { readonly runId: string; readonly executionId: string },
): Promise<void> {
  const seconds = await retentionSeconds(tx, target.runId);
  await tx.query(endTurn, [target.executionId, seconds, deps.timing.leaveSeconds]);
}

const blockTurn = defineStatement({
  name: 'block_debug_turn',
  text: `
    UPDATE executions e SET phase = 'idle', finished_at = clock_timestamp(), deadline_at = NULL, awaiting_until = NULL,
      debug_request = $2::jsonb, idle_until = ${fromNow('$3')}
    FROM runs r
    WHERE e.id = $1 AND r.id = e.run_id AND r.current_execution_id = e.id AND r.state = 'FAILED' AND e.phase = 'running'
    RETURNING ${tellReaders('e.run_id')}, ${tellAgent('e.run_id')}, ${tellQueue('e.pool')}`,
  row: {},
});

/**
 * Makes a turn in the debug window wait for a person's answer. The sandbox is then idle, as between two turns. The sandbox and the question
 * end when the window ends. Returns false if the execution runs no turn in the debug window.
 */
async function blockDebugTurn(
  tx: Queryable,
  target: { readonly runId: string; readonly executionId: string },
  request: OpenRequest,
): Promise<boolean> {
  // If the environment's retention time is now 0, use the default, because a person needs time to answer the question.
  const seconds = (await retentionSeconds(tx, target.runId)) || defaultRetentionMinutes * 60;
  return (await tx.query(blockTurn, [target.executionId, JSON.stringify(request), seconds])).length === 1;
}

const expire = defineStatement({
  name: 'expire_debug_turn',
  text: `
    UPDATE executions e SET phase = 'stopping', stop_reason = 'ordered', finished_at = clock_timestamp(), deadline_at = NULL,
      stop_deadline = ${fromNow('$2')}
    FROM runs r
    WHERE e.id = $1 AND r.id = e.run_id AND r.state = 'FAILED' AND e.phase = 'running' AND e.deadline_at < clock_timestamp()
    RETURNING ${tellReaders('e.run_id')}, ${tellAgent('e.run_id')}`,
  row: {},
});

/** Orders the end of the sandbox if its turn in the debug window has passed the deadline. */
export async function expireDebugTurn(deps: ExecutionDeps, tx: Queryable, executionId: string): Promise<void> {
  await tx.query(expire, [executionId, deps.timing.cancelGraceSeconds]);
}

/** The time for which the sandbox stays if the run has no environment, or if the environment sets no time. */
const defaultRetentionMinutes = 10;

const readRetention = defineStatement({
  name: 'read_failure_retention',
  text: `
    SELECT coalesce(${configOfRun('env', 'r')}->'failure_session_retention_minutes', '${defaultRetentionMinutes}') AS minutes,
      jsonb_path_exists(coalesce(q.rights, '{}'), '$.secrets[*].phase ? (@ == "setup")') AS has_setup_secrets
    FROM runs r JOIN run_requests q ON q.run_id = r.id LEFT JOIN environments env ON env.uid = r.environment_id AND ${mayUse('env', 'r')} WHERE r.id = $1`,
  row: {
    minutes: nullable(json<NonNullable<EnvironmentConfig['failure_session_retention_minutes']>>()),
    has_setup_secrets: boolean,
  },
});

/**
 * Returns the time for which the sandbox of a failed setup stays, in seconds. 0: the sandbox ends at once, for example because files of the
 * failed setup may contain secrets that the agent must not see.
 */
export async function retentionSeconds(db: Queryable, runId: string): Promise<number> {
  const [row] = await db.query(readRetention, [runId]);
  return row?.has_setup_secrets ? 0 : (row?.minutes ?? 0) * 60;
}
