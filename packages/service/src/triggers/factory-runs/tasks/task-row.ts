/** Reads rows of tasks with their runs, and converts them to the form of the API. */
import type { FactoryTask, FactoryTaskStage } from '@runyard/contract/factories/factory-tasks';
import type { RunState } from '@runyard/contract/runs/states';
import type { UserProfile } from '@runyard/contract/wire/profiles';
import type { Queryable } from '../../../platform/store/database/database.ts';
import {
  defineStatement,
  nullable,
  type RowOf,
  text,
  timestamp,
  uuid,
} from '../../../platform/store/database/statement.ts';
import { isRunTypeCancellable } from '../../../runs/executions/cancel/cancel.ts';
import type { RunActor } from '../../../team/access/actor.ts';
import { readProfiles } from '../../../team/access/profiles.ts';

/**
 * FROM clause with tasks `t`, and for each task the run `s` that created it, its current run `r`, and whether `r` was cancelled after the
 * stage of the task was set.
 */
export const fromTasks = `
  FROM factory_tasks t
  LEFT JOIN runs s ON s.id = t.run_id AND s.team_id = t.team_id
  LEFT JOIN LATERAL (
    SELECT id, state, ended_at, worker_host, execution_location, source FROM runs
    WHERE conversation_id = t.conversation_id AND team_id = t.team_id AND ancestor_ids = '{}' ORDER BY created_at DESC, id DESC LIMIT 1
  ) r ON true
  CROSS JOIN LATERAL (SELECT r.state = 'CANCELLED' AND r.ended_at > t.stage_at AS is_cancelled) c`;

export const stageOfTask = "CASE WHEN c.is_cancelled THEN 'CANCELLED' ELSE t.stage END";
export const changeOfTask = 'CASE WHEN c.is_cancelled THEN greatest(t.updated_at, r.ended_at) ELSE t.updated_at END';

export const taskRow = {
  uid: text(),
  factory_uid: text(),
  conversation_id: uuid,
  run_id: uuid,
  title: text(),
  description: nullable(text()),
  stage: text<FactoryTaskStage>(),
  created_at: timestamp,
  updated_at: timestamp,
  author_kind: nullable(text<RunActor['kind']>()),
  author_uid: nullable(text()),
  ticket_source: nullable(text()),
  ticket_id: nullable(text()),
  current_id: nullable(uuid),
  current_state: nullable(text<RunState>()),
  worker_host: nullable(text()),
  execution_location: nullable(text()),
  source: nullable(text()),
};

/** SQL of the columns of `taskRow`, for a statement with `fromTasks`. */
export const taskColumns = `t.uid, t.factory_uid, t.conversation_id, t.run_id, t.title, t.description, ${stageOfTask} AS stage, t.created_at,
  ${changeOfTask} AS updated_at, s.creator_kind AS author_kind, s.creator_uid AS author_uid,
  s.metadata->>'ticket_source' AS ticket_source, s.metadata->>'ticket_id' AS ticket_id,
  r.id AS current_id, r.state AS current_state, r.worker_host, r.execution_location, r.source`;

export const readByUid = defineStatement({
  name: 'read_task_of_factory',
  text: `SELECT ${taskColumns} ${fromTasks} WHERE t.team_id = $1 AND t.factory_uid = $2 AND t.uid = $3`,
  row: taskRow,
});
export type TaskRow = RowOf<typeof readByUid>;

/** Which optional parts of a task to return. A list returns them only if the request wants them. */
interface Parts {
  readonly ticket: boolean;
  readonly currentRun: boolean;
  readonly outputsOf?: (task: TaskRow) => NonNullable<FactoryTask['outputs']>;
}

/** Converts rows to the form of the API, in the order of `rows`. */
export async function toTasks(
  db: Queryable,
  teamId: string,
  rows: readonly TaskRow[],
  parts: Parts,
): Promise<FactoryTask[]> {
  const profileOf = await readProfiles(
    db,
    teamId,
    rows.flatMap((row) => authorOf(row) ?? []),
  );
  return rows.map((row) => ({
    uid: row.uid,
    factory_uid: row.factory_uid,
    conversation_id: row.conversation_id,
    run_id: row.run_id,
    title: row.title,
    ...(row.description === null ? {} : { description: row.description }),
    stage: row.stage,
    created_at: row.created_at,
    updated_at: row.updated_at,
    ...authorMember(row, profileOf),
    ...(parts.currentRun ? currentRunOf(row) : {}),
    ...(parts.outputsOf ? { outputs: parts.outputsOf(row) } : {}),
    ...(parts.ticket && row.ticket_source !== null ? { ticket_source: row.ticket_source } : {}),
    ...(parts.ticket && row.ticket_id !== null ? { ticket_id: row.ticket_id } : {}),
  }));
}

const authorOf = ({ author_kind: kind, author_uid: uid }: TaskRow): RunActor | undefined =>
  kind === null || uid === null ? undefined : { kind, uid };

function authorMember(row: TaskRow, profileOf: (actor: RunActor) => UserProfile): Pick<FactoryTask, 'author'> {
  const author = authorOf(row);
  return author ? { author: profileOf(author) } : {};
}

function currentRunOf(row: TaskRow): Pick<FactoryTask, 'current_run'> {
  const { current_id, current_state, worker_host, execution_location, source } = row;
  if (current_id === null || current_state === null || execution_location === null || source === null) return {};
  const is_run_type_cancellable = isRunTypeCancellable({ worker_host, execution_location, source });
  return { current_run: { run_id: current_id, state: current_state, is_run_type_cancellable } };
}
