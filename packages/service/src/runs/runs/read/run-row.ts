import type { RunItem } from '@runyard/contract/runs/runs';
import type { ErrorDetail } from '@runyard/contract/wire/errors';
import {
  type Column,
  float,
  json,
  nullable,
  text,
  timestamp,
  uuid,
} from '../../../platform/store/database/statement.ts';
import { skillOfRun } from '../../../team/skills/of-run.ts';
import type { OpenRequest } from '../../executions/idle/debug-window.ts';
import { debugPhases } from '../../executions/phases.ts';
import { joinRequest, rowOf, selectOf } from './columns.ts';

/** Columns that both whole items and summaries show. */
export const shownColumns = [
  'id',
  'title',
  'state',
  'model_id',
  'skill_spec',
  'worker_host',
  'source',
  'execution_location',
  'creator_kind',
  'creator_uid',
  'executor_kind',
  'executor_uid',
  'parent_run_id',
  'retry_of',
  'rerun_of',
  'ancestor_ids',
  'schedule_id',
  'schedule_name',
  'schedule_cron',
  'status_message',
  'error_code',
  'retryable',
  'created_at',
  'updated_at',
  'started_at',
  'ended_at',
] as const;
const itemColumns = [
  ...shownColumns,
  'prompt',
  'config',
  'contents',
  'rights',
  'comparison_commits',
  'metadata',
  'conversation_id',
  'open_request',
  'dropped_events',
  'dropped_lines',
] as const;

/** Declares the columns of `RunRow` for statements. */
export const runRow = {
  ...rowOf(itemColumns),
  /** The skill that the run follows; null until the first agent of the run has begun. */
  skill: nullable(json<NonNullable<RunItem['agent_skill']>>()),
  /** Id of the current execution that readers get. Workers and agents use another id. */
  session_id: nullable(uuid),
  /** Set only if the error code is `external_authentication_required`. */
  error_detail: nullable(json<ErrorDetail>()),
  /** Open question of the agent in the sandbox of a failed setup. */
  debug_request: nullable(json<OpenRequest>()),
  debug_until: nullable(timestamp),
  phase: nullable(text()),
  seconds: nullable(float),
};

/** The data of a run and its current execution that the run's API object shows. */
export type RunRow = { [Name in keyof typeof runRow]: (typeof runRow)[Name] extends Column<infer T> ? T : never };

/** FROM clause for `itemSelect`, in which `r` is the run and `q` its request. */
export const fromRuns = `
  FROM runs r ${joinRequest()}
  LEFT JOIN LATERAL (
    SELECT max(x.phase) FILTER (WHERE x.id = r.current_execution_id) AS phase,
      (array_agg(x.session_id) FILTER (WHERE x.id = r.current_execution_id))[1] AS session_id,
      max(coalesce(x.idle_until, x.deadline_at)) FILTER (WHERE x.id = r.current_execution_id AND x.phase IN ${debugPhases} AND r.state = 'FAILED') AS debug_until,
      (array_agg(x.debug_request) FILTER (WHERE x.id = r.current_execution_id AND x.phase = 'idle' AND r.state = 'FAILED'))[1] AS debug_request,
      sum(extract(epoch FROM coalesce(x.finished_at, x.ended_at, now()) - x.claimed_at) - x.idle_seconds)::float8 AS seconds
    FROM executions x WHERE x.run_id = r.id
  ) e ON true`;

/** SQL of the columns of `RunRow`. */
export const itemSelect = `
  ${selectOf(itemColumns)}, ${skillOfRun('r')} AS skill,
    CASE WHEN r.error_code = 'external_authentication_required' THEN r.error_detail END AS error_detail,
    e.phase, e.session_id, e.seconds, e.debug_until, e.debug_request`;
