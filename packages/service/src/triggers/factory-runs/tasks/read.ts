/** Reads one task with its outputs. */
import type { FactoryTask, FactoryTaskStage } from '@runyard/contract/factories/factory-tasks';
import { maxTaskOutputs } from '@runyard/contract/limits';
import type { Queryable } from '../../../platform/store/database/database.ts';
import { defineStatement, text, uuid } from '../../../platform/store/database/statement.ts';
import { isUuid } from '../../../platform/store/database/uuid.ts';
import { isBelow } from '../../../runs/executions/descendants.ts';
import { readNewestOutputs } from '../../../runs/files/artifacts/read.ts';
import type { TaskOfConversation } from '../../../runs/inbox/items.ts';
import { fromTasks, readByUid, stageOfTask, type TaskRow, taskColumns, taskRow, toTasks } from './task-row.ts';

/** A factory of a team. */
export interface FactoryPlace {
  readonly teamId: string;
  readonly factoryUid: string;
}

const readByConversation = defineStatement({
  name: 'read_task_of_conversation',
  text: `SELECT ${taskColumns} ${fromTasks} WHERE t.team_id = $1 AND t.factory_uid = $2 AND t.conversation_id = $3`,
  row: taskRow,
});

/** Reads the conversation of a run's root: the run from which all its ancestors descend, or the run itself if no run started it. */
const readRootConversation = defineStatement({
  name: 'read_conversation_of_root_run',
  text: `
    SELECT a.conversation_id AS id FROM runs x JOIN runs a ON a.id = coalesce(x.ancestor_ids[cardinality(x.ancestor_ids)], x.id)
    WHERE x.id = $2 AND x.team_id = $1`,
  row: { id: uuid },
});

const readRunsOfTree = defineStatement({
  name: 'read_runs_of_task',
  text: `
    WITH own AS (SELECT id, team_id FROM runs WHERE team_id = $1 AND conversation_id = $2)
    SELECT id FROM own UNION SELECT r.id FROM own JOIN runs r ON ${isBelow('r', 'own')}`,
  row: { id: uuid },
});

/** Returns the row of a task; null if the factory has no task with this UID. */
export async function findTask(
  db: Queryable,
  { teamId, factoryUid }: FactoryPlace,
  uid: string,
): Promise<TaskRow | null> {
  const [row] = await db.query(readByUid, [teamId, factoryUid, uid]);
  return row ?? null;
}

/** Returns a task in the form of the API, with the outputs of the runs of its conversation and of all their descendants. */
export async function toWholeTask(db: Queryable, teamId: string, row: TaskRow): Promise<FactoryTask> {
  const runs = await db.query(readRunsOfTree, [teamId, row.conversation_id]);
  const outputs = await readNewestOutputs(
    db,
    runs.map(({ id }) => ({ group: row.uid, runId: id })),
    maxTaskOutputs,
  );
  const outputsOf = () => outputs.get(row.uid) ?? [];
  const [task] = await toTasks(db, teamId, [row], { ticket: true, currentRun: true, outputsOf });
  if (!task) throw new Error('the task has no item');
  return task;
}

/** Reads a task; null if the factory has no task with this UID. */
export async function readTask(db: Queryable, place: FactoryPlace, uid: string): Promise<FactoryTask | null> {
  const row = await findTask(db, place, uid);
  return row && (await toWholeTask(db, place.teamId, row));
}

/** Reads the task of a conversation; null if the factory has no task for this conversation. `conversationId` may be any text. */
export async function readTaskOfConversation(
  db: Queryable,
  { teamId, factoryUid }: FactoryPlace,
  conversationId: string,
): Promise<FactoryTask | null> {
  if (!isUuid(conversationId)) return null;
  const [row] = await db.query(readByConversation, [teamId, factoryUid, conversationId]);
  return row ? await toWholeTask(db, teamId, row) : null;
}

/** Reads the task on which a run works; null if there is none in this factory. `runId` may be any text. */
export async function readTaskOfRun(db: Queryable, place: FactoryPlace, runId: string): Promise<FactoryTask | null> {
  if (!isUuid(runId)) return null;
  const [conversation] = await db.query(readRootConversation, [place.teamId, runId]);
  return conversation ? await readTaskOfConversation(db, place, conversation.id) : null;
}

const readByConversations = defineStatement({
  name: 'read_tasks_of_conversations',
  text: `SELECT t.uid, t.factory_uid, t.conversation_id, ${stageOfTask} AS stage ${fromTasks} WHERE t.team_id = $1 AND t.conversation_id = ANY($2::uuid[])`,
  row: { uid: text(), factory_uid: text(), conversation_id: uuid, stage: text<FactoryTaskStage>() },
});

/** Returns the tasks of conversations of the team, by the ids of the conversations. */
export async function readTasksOfConversations(
  db: Queryable,
  teamId: string,
  conversationIds: readonly string[],
): Promise<ReadonlyMap<string, TaskOfConversation>> {
  if (conversationIds.length === 0) return new Map();
  const rows = await db.query(readByConversations, [teamId, conversationIds]);
  return new Map(
    rows.map(({ conversation_id, uid, factory_uid, stage }) => [
      conversation_id,
      { uid, factoryUid: factory_uid, stage },
    ]),
  );
}
