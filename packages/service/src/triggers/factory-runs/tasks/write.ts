/** Writes tasks. */
import type {
  CreateFactoryTaskRequest,
  FactoryTaskStage,
  UpdateFactoryTaskRequest,
} from '@runyard/contract/factories/factory-tasks';
import { isTerminal } from '@runyard/contract/runs/run-states';
import type { Database, Queryable } from '../../../platform/store/database/database.ts';
import {
  boolean,
  defineStatement,
  nullable,
  text,
  timestamp,
  uuid,
} from '../../../platform/store/database/statement.ts';
import { isUuid } from '../../../platform/store/database/uuid.ts';
import { cancelRun } from '../../../runs/executions/cancel/cancel.ts';
import { cancelBelow } from '../../../runs/executions/cancel/cancel-descendants.ts';
import type { ExecutionDeps } from '../../../runs/executions/deps.ts';
import { resolveReviewsOf } from '../../../runs/inbox/resolve.ts';
import { type Author, recordAction } from '../../../team/access/audit/record.ts';
import { newUid } from '../../../team/access/teams/uid.ts';
import { keepFactory } from '../../factories/factories.ts';
import type { TaskMove } from '../../history/write.ts';
import { findTask } from './read.ts';

const insert = defineStatement({
  name: 'insert_task_of_factory',
  text: `
    INSERT INTO factory_tasks (uid, factory_uid, team_id, conversation_id, run_id, title, description, stage)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT (conversation_id) DO NOTHING RETURNING uid`,
  row: { uid: text() },
});

/** A task to write. */
interface NewTask {
  readonly teamId: string;
  readonly factoryUid: string;
  readonly conversationId: string;
  /** Newest run of the conversation. */
  readonly runId: string;
  readonly title: string;
  readonly description?: string | undefined;
  readonly stage?: FactoryTaskStage | undefined;
}

/** Inserts a task and returns its UID. Returns null if the conversation already has a task. The caller has called `keepFactory`. */
export async function insertTask(tx: Queryable, task: NewTask): Promise<string | null> {
  const { teamId, factoryUid, conversationId, runId, title, description, stage } = task;
  const values = [newUid(), factoryUid, teamId, conversationId, runId, title, description || null, stage ?? 'TRIAGE'];
  const [made] = await tx.query(insert, values);
  return made?.uid ?? null;
}

/** Reads the newest run of a conversation among the runs that no other run started. If there is no such run, reads the newest run. */
const readNewestRun = defineStatement({
  name: 'read_newest_run_for_task',
  text: `
    SELECT id, ancestor_ids <> '{}' AS is_child FROM runs WHERE team_id = $1 AND conversation_id = $2
    ORDER BY is_child, created_at DESC, id DESC LIMIT 1`,
  row: { id: uuid, is_child: boolean },
});

const readUidOf = defineStatement({
  name: 'read_uid_of_task_of_conversation',
  text: 'SELECT uid, factory_uid FROM factory_tasks WHERE conversation_id = $1',
  row: { uid: text(), factory_uid: text() },
});

/**
 * Outcome of creating a task. `taken`: the conversation already has a task; `uid` names it. `child`: another run started all runs of
 * the conversation.
 */
export type CreateTaskOutcome =
  | { readonly kind: 'created'; readonly uid: string }
  | { readonly kind: 'no_factory' | 'no_conversation' | 'child' }
  | { readonly kind: 'taken'; readonly uid: string; readonly factoryUid: string };

/** Creates a task for a conversation of the team. */
export async function createTask(
  tx: Queryable,
  by: Author,
  factoryUid: string,
  request: CreateFactoryTaskRequest,
): Promise<CreateTaskOutcome> {
  const { teamId } = by;
  const { conversation_id: conversationId, title, description, stage } = request;
  if (!(await keepFactory(tx, teamId, factoryUid))) return { kind: 'no_factory' };
  const [run] = isUuid(conversationId) ? await tx.query(readNewestRun, [teamId, conversationId]) : [];
  if (!run) return { kind: 'no_conversation' };
  if (run.is_child) return { kind: 'child' };
  const task = {
    teamId,
    factoryUid,
    conversationId,
    runId: run.id,
    title,
    description: description ?? undefined,
    stage,
  };
  const uid = await insertTask(tx, task);
  if (uid === null) {
    const [other] = await tx.query(readUidOf, [conversationId]);
    return { kind: 'taken', uid: other?.uid ?? '', factoryUid: other?.factory_uid ?? '' };
  }
  await recordAction(tx, by, { action: 'factory_task.create', subject: { type: 'factory_task', uid, name: title } });
  return { kind: 'created', uid };
}

const lock = defineStatement({
  name: 'lock_task_of_factory',
  text: `
    SELECT title, description, stage, conversation_id FROM factory_tasks
    WHERE team_id = $1 AND factory_uid = $2 AND uid = $3 FOR NO KEY UPDATE`,
  row: { conversation_id: uuid, title: text(), description: nullable(text()), stage: text<FactoryTaskStage>() },
});

/** Writes the starts of the automations that a move of a task matches. A higher room passes this function. */
export type StartMoves = (tx: Queryable, factoryUid: string, move: TaskMove) => Promise<void>;

const update = defineStatement({
  name: 'update_task_of_factory',
  text: `
    UPDATE factory_tasks SET title = $2, description = $3, stage = coalesce($4, stage),
      stage_at = CASE WHEN $4 IS NULL THEN stage_at ELSE clock_timestamp() END, updated_at = clock_timestamp()
    WHERE uid = $1 RETURNING stage_at`,
  row: { stage_at: timestamp },
});

/** Names a task. */
export interface TaskPlace {
  readonly factoryUid: string;
  readonly taskUid: string;
}

/** Changes a task. Returns false if the team has no such task in this factory. */
export async function updateTask(
  db: Database,
  by: Author,
  { factoryUid, taskUid }: TaskPlace,
  changes: UpdateFactoryTaskRequest,
  startMoves: StartMoves,
): Promise<boolean> {
  return await db.transaction(async (tx) => {
    const [before] = await tx.query(lock, [by.teamId, factoryUid, taskUid]);
    if (!before) return false;
    const title = changes.title ?? before.title;
    const description = changes.description === undefined ? before.description : changes.description || null;
    const [moved] = await tx.query(update, [taskUid, title, description, changes.stage ?? null]);
    const after = { title, description, stage: changes.stage ?? before.stage };
    const subject = { type: 'factory_task', uid: taskUid, name: title };
    await recordAction(tx, by, { action: 'factory_task.update', subject, before, after });
    const { conversation_id: conversationId } = before;
    await resolveReviewsOf(tx, { teamId: by.teamId, conversationId, stage: after.stage });
    if (moved && after.stage !== before.stage)
      await startMoves(tx, factoryUid, {
        factory_task_uid: taskUid,
        title,
        from: before.stage,
        to: after.stage,
        changed_at: moved.stage_at,
        changed_by: { kind: by.creator.kind, uid: by.creator.uid },
      });
    return true;
  });
}

const cancelStageOf = defineStatement({
  name: 'cancel_stage_of_task',
  text: `
    WITH before AS (
      SELECT uid, stage FROM factory_tasks WHERE team_id = $1 AND factory_uid = $2 AND uid = $3 FOR NO KEY UPDATE)
    UPDATE factory_tasks t SET stage = 'CANCELLED', stage_at = clock_timestamp(), updated_at = clock_timestamp()
    FROM before WHERE t.uid = before.uid RETURNING t.title, before.stage, t.stage_at, t.conversation_id`,
  row: { conversation_id: uuid, title: text(), stage: text<FactoryTaskStage>(), stage_at: timestamp },
});

/**
 * Writes the stage CANCELLED. `isRecorded`: the audit log already has an entry for this cancel. Returns false if the team has no such
 * task in this factory.
 */
export async function cancelStage(
  db: Database,
  by: Author,
  { factoryUid, taskUid }: TaskPlace,
  { isRecorded, startMoves }: { readonly isRecorded: boolean; readonly startMoves: StartMoves },
): Promise<boolean> {
  return await db.transaction(async (tx) => {
    const [task] = await tx.query(cancelStageOf, [by.teamId, factoryUid, taskUid]);
    if (!task) return false;
    const subject = { type: 'factory_task', uid: taskUid, name: task.title };
    if (!isRecorded) await recordAction(tx, by, { action: 'factory_task.cancel', subject });
    const { conversation_id: conversationId } = task;
    await resolveReviewsOf(tx, { teamId: by.teamId, conversationId, stage: 'CANCELLED' });
    if (task.stage !== 'CANCELLED')
      await startMoves(tx, factoryUid, {
        factory_task_uid: taskUid,
        title: task.title,
        from: task.stage,
        to: 'CANCELLED',
        changed_at: task.stage_at,
        changed_by: { kind: by.creator.kind, uid: by.creator.uid },
      });
    return true;
  });
}

const remove = defineStatement({
  name: 'delete_task_of_factory',
  text: 'DELETE FROM factory_tasks WHERE team_id = $1 AND factory_uid = $2 AND uid = $3 RETURNING title',
  row: { title: text() },
});

/** Deletes a task. Returns false if the team has no such task in this factory. */
export async function deleteTask(db: Database, by: Author, { factoryUid, taskUid }: TaskPlace): Promise<boolean> {
  return await db.transaction(async (tx) => {
    const [gone] = await tx.query(remove, [by.teamId, factoryUid, taskUid]);
    if (!gone) return false;
    const subject = { type: 'factory_task', uid: taskUid, name: gone.title };
    await recordAction(tx, by, { action: 'factory_task.delete', subject });
    return true;
  });
}

/**
 * `not_found` becomes 404. `pending` becomes 409, and the client may try again. `not_supported` becomes 422: the run is self-hosted,
 * local, or of a GitHub Action.
 */
type CancelTaskOutcome = 'cancelled' | 'not_found' | 'pending' | 'not_supported';

/**
 * Cancels the current run of a task and all live descendants of the run, and then writes the stage CANCELLED. If the process dies
 * before it writes the stage, readers still see CANCELLED, because the run is cancelled. If the run has already ended, only its
 * descendants are cancelled.
 */
export async function cancelTask(
  deps: ExecutionDeps,
  by: Author,
  place: TaskPlace,
  startMoves: StartMoves,
): Promise<CancelTaskOutcome> {
  const task = await findTask(deps.db, { teamId: by.teamId, factoryUid: place.factoryUid }, place.taskUid);
  if (!task) return 'not_found';
  const { current_id: runId, current_state: state } = task;
  const outcome = runId === null ? 'not_found' : await cancelRun(deps, runId, by);
  const hasEnded = outcome === 'already_ended' || (outcome === 'not_supported' && state !== null && isTerminal(state));
  if (!hasEnded && (outcome === 'pending' || outcome === 'not_supported')) return outcome;
  if (hasEnded && runId !== null) await cancelBelow(deps, runId);
  // If `cancelRun` cancelled the run, the audit log already has an entry for this cancel.
  const isRecorded = outcome === 'cancelled' || outcome === 'wait_ended';
  return (await cancelStage(deps.db, by, place, { isRecorded, startMoves })) ? 'cancelled' : 'not_found';
}
