import type { AmbientAgentConfig } from '@runyard/contract/runs/config';
import type { RunItem } from '@runyard/contract/runs/runs';
import type { RunExecutionLocation, RunSourceType, RunState } from '@runyard/contract/runs/states';
import type { ErrorCode, ErrorDetail } from '@runyard/contract/wire/errors';
import {
  boolean,
  float,
  integer,
  json,
  nullable,
  text,
  timestamp,
  uuid,
  uuids,
} from '../../../platform/store/database/statement.ts';
import type { RunActor } from '../../../team/access/actor.ts';
import type { RunContent } from '../../../team/access/contents/content.ts';
import type { RunRights } from '../../../team/access/contents/run-rights.ts';
import { skillOfRun } from '../../../team/skills/of-run.ts';
import type { OpenRequest } from '../../executions/idle/debug-window.ts';
import { debugPhases } from '../../executions/transitions/transition.ts';

/** The data of a run and its current execution that the run's API object shows. */
export interface RunRow {
  id: string;
  title: string;
  state: RunState;
  prompt: string;
  config: AmbientAgentConfig;
  model_id: string;
  skill_spec: string | null;
  /** The skill that the run follows; null until the first agent of the run has begun. */
  skill: NonNullable<RunItem['agent_skill']> | null;
  worker_host: string | null;
  source: RunSourceType;
  execution_location: RunExecutionLocation;
  creator_kind: RunActor['kind'];
  creator_uid: string;
  executor_kind: RunActor['kind'];
  executor_uid: string;
  parent_run_id: string | null;
  /** Ids of the ancestors, the parent first and the root last. */
  ancestor_ids: string[];
  schedule_id: string | null;
  schedule_name: string | null;
  schedule_cron: string | null;
  contents: RunContent[];
  rights: RunRights | null;
  metadata: Record<string, string>;
  conversation_id: string;
  /** Id of the current execution that readers get. Workers and agents use another id. */
  session_id: string | null;
  status_message: string | null;
  error_code: ErrorCode | null;
  retryable: boolean | null;
  /** Set only if the error code is `external_authentication_required`. */
  error_detail: ErrorDetail | null;
  open_request: OpenRequest | null;
  /** Open question of the agent in the sandbox of a failed setup. */
  debug_request: OpenRequest | null;
  debug_until: string | null;
  dropped_events: number;
  dropped_lines: number;
  created_at: string;
  updated_at: string;
  started_at: string | null;
  ended_at: string | null;
  phase: string | null;
  seconds: number | null;
}

/** Declares the columns of `RunRow` for statements. */
export const runRow = {
  id: uuid,
  title: text(),
  state: text<RunState>(),
  prompt: text(),
  config: json<AmbientAgentConfig>(),
  model_id: text(),
  skill_spec: nullable(text()),
  skill: nullable(json<NonNullable<RunItem['agent_skill']>>()),
  worker_host: nullable(text()),
  source: text<RunSourceType>(),
  execution_location: text<RunExecutionLocation>(),
  creator_kind: text<RunActor['kind']>(),
  creator_uid: text(),
  executor_kind: text<RunActor['kind']>(),
  executor_uid: text(),
  parent_run_id: nullable(uuid),
  ancestor_ids: uuids,
  schedule_id: nullable(uuid),
  schedule_name: nullable(text()),
  schedule_cron: nullable(text()),
  contents: json<RunContent[]>(),
  rights: nullable(json<RunRights>()),
  metadata: json<Record<string, string>>(),
  conversation_id: uuid,
  session_id: nullable(uuid),
  status_message: nullable(text()),
  error_code: nullable(text<ErrorCode>()),
  retryable: nullable(boolean),
  error_detail: nullable(json<ErrorDetail>()),
  open_request: nullable(json<OpenRequest>()),
  debug_request: nullable(json<OpenRequest>()),
  debug_until: nullable(timestamp),
  dropped_events: integer,
  dropped_lines: integer,
  created_at: timestamp,
  updated_at: timestamp,
  started_at: nullable(timestamp),
  ended_at: nullable(timestamp),
  phase: nullable(text()),
  seconds: nullable(float),
};

/** FROM clause for `runColumns`, in which `r` is the run. */
export const fromRuns = `
  FROM runs r
  LEFT JOIN LATERAL (
    SELECT max(x.phase) FILTER (WHERE x.id = r.current_execution_id) AS phase,
      (array_agg(x.session_id) FILTER (WHERE x.id = r.current_execution_id))[1] AS session_id,
      max(coalesce(x.idle_until, x.deadline_at)) FILTER (WHERE x.id = r.current_execution_id AND x.phase IN ${debugPhases} AND r.state = 'FAILED') AS debug_until,
      (array_agg(x.debug_request) FILTER (WHERE x.id = r.current_execution_id AND x.phase = 'idle' AND r.state = 'FAILED'))[1] AS debug_request,
      sum(extract(epoch FROM coalesce(x.finished_at, x.ended_at, now()) - x.claimed_at) - x.idle_seconds)::float8 AS seconds
    FROM executions x WHERE x.run_id = r.id
  ) e ON true`;

/** SQL of the columns of `RunRow`. */
export const runColumns = `
  r.id, r.title, r.state, r.prompt, r.config, r.model_id, r.skill_spec, ${skillOfRun('r')} AS skill, r.worker_host, r.source, r.execution_location,
    r.creator_kind, r.creator_uid, r.executor_kind, r.executor_uid, r.parent_run_id, r.ancestor_ids, r.schedule_id, r.schedule_name, r.schedule_cron, r.contents, r.rights, r.metadata, r.conversation_id,
    r.status_message, r.error_code, r.retryable,
    CASE WHEN r.error_code = 'external_authentication_required' THEN r.error_detail END AS error_detail, r.open_request, r.dropped_events, r.dropped_lines, r.created_at, r.updated_at, r.started_at, r.ended_at,
    e.phase, e.session_id, e.seconds, e.debug_until, e.debug_request`;
