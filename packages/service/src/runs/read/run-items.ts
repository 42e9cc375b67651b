/** Runs as the API shows them, in a number of queries that does not depend on how many they are. */
import type { AmbientAgentConfig } from '@runyard/contract/config';
import type { ErrorCode } from '@runyard/contract/errors';
import type { RunItem } from '@runyard/contract/runs';
import type { RunExecutionLocation, RunSourceType, RunState } from '@runyard/contract/states';
import { readProfiles } from '../../access/profiles.ts';
import { isRunTypeCancellable } from '../../executions/cancel/cancel.ts';
import { blockedOn, type OpenRequest } from '../../executions/debug-window/block.ts';
import { readArtifactItems } from '../../files/artifacts/read.ts';
import type { Queryable, Statement } from '../../store/database/database.ts';
import { isUuid } from '../../store/database/uuid.ts';
import { usageOfRuns } from '../../usage/usage-of-run.ts';
import { isoDuration } from './duration.ts';

/** Columns of a run that its item is made of. */
export interface RunRow {
  id: string;
  title: string;
  state: RunState;
  prompt: string;
  config: AmbientAgentConfig;
  skill_spec: string | null;
  worker_host: string | null;
  source: RunSourceType;
  execution_location: RunExecutionLocation;
  creator_kind: 'user' | 'service_account';
  creator_uid: string;
  executor_kind: 'user' | 'service_account';
  executor_uid: string;
  parent_run_id: string | null;
  metadata: Record<string, string>;
  conversation_id: string;
  /** Of the current execution, for readers. Its other id is the workers'. */
  session_id: string | null;
  status_message: string | null;
  error_code: ErrorCode | null;
  retryable: boolean | null;
  open_request: OpenRequest | null;
  /** What the sandbox of a failed setup asks. */
  debug_request: OpenRequest | null;
  debug_until: string | null;
  dropped_events: number;
  dropped_lines: number;
  created_at: string;
  updated_at: string;
  started_at: string | null;
  phase: string | null;
  seconds: number | null;
}

/** What RunRow is selected from; the run is `r`. */
export const fromRuns = `
  FROM runs r
  LEFT JOIN LATERAL (
    SELECT max(x.phase) FILTER (WHERE x.id = r.current_execution_id) AS phase,
      (array_agg(x.session_id) FILTER (WHERE x.id = r.current_execution_id))[1] AS session_id,
      max(coalesce(x.idle_until, x.deadline_at)) FILTER (WHERE x.id = r.current_execution_id AND x.phase IN ('idle', 'running') AND r.state = 'FAILED') AS debug_until,
      (array_agg(x.debug_request) FILTER (WHERE x.id = r.current_execution_id AND x.phase = 'idle' AND r.state = 'FAILED'))[1] AS debug_request,
      sum(extract(epoch FROM coalesce(x.finished_at, x.ended_at, now()) - x.claimed_at) - x.idle_seconds)::float8 AS seconds
    FROM executions x WHERE x.run_id = r.id
  ) e ON true`;

/** The columns of RunRow. */
export const runColumns = `
  r.id, r.title, r.state, r.prompt, r.config, r.skill_spec, r.worker_host, r.source, r.execution_location,
    r.creator_kind, r.creator_uid, r.executor_kind, r.executor_uid, r.parent_run_id, r.metadata, r.conversation_id,
    r.status_message, r.error_code, r.retryable, r.open_request, r.dropped_events, r.dropped_lines, r.created_at, r.updated_at, r.started_at,
    e.phase, e.session_id, e.seconds, e.debug_until, e.debug_request`;

const readOne: Statement = {
  name: 'read_run_item',
  text: `SELECT ${runColumns} ${fromRuns} WHERE r.id = $1 AND r.team_id = $2`,
};

/** Whose runs are shown, and where their pages are. */
export interface ReadContext {
  readonly teamId: string;
  readonly teamUid: string;
  readonly baseUrl: string;
}

/** Phases of an execution whose sandbox is there. */
const sandboxPhases = ['claimed', 'running', 'idle', 'stopping'];

/** Items of the rows, in their order. */
export async function toRunItems(db: Queryable, context: ReadContext, rows: readonly RunRow[]): Promise<RunItem[]> {
  if (rows.length === 0) return [];
  const ids = rows.map(({ id }) => id);
  const actors = rows.flatMap((row) => [
    { kind: row.creator_kind, uid: row.creator_uid },
    { kind: row.executor_kind, uid: row.executor_uid },
  ]);
  const [artifacts, usage, profileOf] = await Promise.all([
    readArtifactItems(db, ids),
    usageOfRuns(db, ids),
    readProfiles(db, context.teamId, actors),
  ]);
  return rows.map((row): RunItem => {
    const requestUsage = usage.get(row.id);
    const asks = row.open_request ?? row.debug_request;
    return {
      run_id: row.id,
      task_id: row.id,
      title: row.title,
      state: row.state,
      prompt: row.prompt,
      created_at: row.created_at,
      updated_at: row.updated_at,
      started_at: row.started_at,
      ...(row.status_message === null
        ? {}
        : {
            status_message: {
              message: row.status_message,
              ...(row.error_code ? { error_code: row.error_code } : {}),
              ...(row.retryable === null ? {} : { retryable: row.retryable }),
              ...(row.debug_until === null ? {} : { session_debug_until: row.debug_until }),
            },
          }),
      ...(asks ? { blocked_on: blockedOn(asks) } : {}),
      source: row.source,
      ...(row.session_id === null ? {} : { session_id: row.session_id }),
      session_link: `${context.baseUrl}/runs/${row.id}`,
      creator: profileOf({ kind: row.creator_kind, uid: row.creator_uid }),
      executor: profileOf({ kind: row.executor_kind, uid: row.executor_uid }),
      agent_config: row.config,
      ...(row.skill_spec ? { agent_skill: skillOf(row.skill_spec) } : {}),
      conversation_id: row.conversation_id,
      ...(row.parent_run_id ? { parent_run_id: row.parent_run_id } : {}),
      is_sandbox_running: sandboxPhases.includes(row.phase ?? ''),
      is_run_type_cancellable: isRunTypeCancellable(row),
      artifacts: artifacts.get(row.id) ?? [],
      metadata: row.metadata,
      scope: { type: 'Team', uid: context.teamUid },
      execution_location: row.execution_location,
      ...(requestUsage ? { request_usage: requestUsage } : {}),
      ...droppedOf(row),
      run_time: isoDuration(row.seconds ?? 0),
    };
  });
}

function droppedOf(row: RunRow): Pick<RunItem, 'dropped_output'> {
  const dropped = { events: Number(row.dropped_events), transcript_lines: Number(row.dropped_lines) };
  return dropped.events + dropped.transcript_lines > 0 ? { dropped_output: dropped } : {};
}

function skillOf(spec: string): NonNullable<RunItem['agent_skill']> {
  const place = spec.slice(spec.indexOf(':') + 1);
  const name = place
    .split('/')
    .filter((part) => part !== 'SKILL.md')
    .at(-1);
  return { ...(name ? { name } : {}), ...(place.includes('/') ? { full_path: place } : {}) };
}

/** Null: the team has no such run. */
export async function readRunItem(db: Queryable, context: ReadContext, runId: string): Promise<RunItem | null> {
  if (!isUuid(runId)) return null;
  const rows = await db.query<RunRow>(readOne, [runId, context.teamId]);
  return (await toRunItems(db, context, rows))[0] ?? null;
}

/** What a route needs to know of a run before it reads more. */
export interface RunReference {
  readonly id: string;
  readonly state: RunState;
  readonly conversationId: string;
  readonly harness: string;
}

const readReference: Statement = {
  name: 'read_run_reference',
  text: 'SELECT id, state, conversation_id AS "conversationId", harness FROM runs WHERE id = $1 AND team_id = $2',
};

/** Null: the team has no such run. */
export async function findRun(db: Queryable, teamId: string, runId: string): Promise<RunReference | null> {
  if (!isUuid(runId)) return null;
  const [row] = await db.query<RunReference>(readReference, [runId, teamId]);
  return row ?? null;
}
