/** Lists the tasks of a factory. */
import type { ListFactoryTasksQuery, ListFactoryTasksResponse } from '@runyard/contract/factories/factory-tasks';
import { maxListedTaskOutputs } from '@runyard/contract/limits';
import { type CursorSigner, listIdentity, readCursor, writeCursor } from '../../../platform/store/cursor.ts';
import type { Queryable } from '../../../platform/store/database/database.ts';
import { defineStatement, uuid } from '../../../platform/store/database/statement.ts';
import { readNewestOutputs } from '../../../runs/files/artifacts/read.ts';
import { uidsOfAddresses } from '../../../team/access/profiles.ts';
import type { FactoryPlace } from './read.ts';
import { changeOfTask, fromTasks, stageOfTask, type TaskRow, taskColumns, taskRow, toTasks } from './task-row.ts';

/**
 * The SQL values by which tasks can be sorted. The last change of a task depends on its current run, because a cancel changes only the
 * row of the run. So there is no index for `updated_at`, and this sort reads all tasks of the factory: 20,000 tasks take 0.5 to 0.9 s.
 */
const sortValues = { created_at: 't.created_at', updated_at: changeOfTask } as const;

/**
 * SQL condition that excludes most tasks with another stage and most tasks that were not changed after the wanted time. It needs no
 * data of runs, so these tasks are excluded before their runs are read. Reading runs takes most of the time.
 */
const mayMatch = `($3::text[] IS NULL OR t.stage = ANY($3) OR 'CANCELLED' = ANY($3))
        AND ($7::timestamptz IS NULL OR t.updated_at > $7 OR t.conversation_id IN (
          SELECT conversation_id FROM runs WHERE team_id = $1 AND state = 'CANCELLED' AND ended_at > $7
            AND (list_at > $7 OR id = ANY(ARRAY(SELECT run_id FROM executions WHERE team_id = $1 AND is_live)))))`;

/** Defines the statement that reads a page in this order. $9, $10: the page begins after this sort value and UID. */
function definePage(sort: keyof typeof sortValues, order: 'asc' | 'desc') {
  const value = sortValues[sort];
  return defineStatement({
    name: `read_tasks_by_${sort}_${order}`,
    text: `
      SELECT ${taskColumns} ${fromTasks}
      WHERE t.team_id = $1 AND t.factory_uid = $2 AND ${mayMatch}
        AND ($3::text[] IS NULL OR ${stageOfTask} = ANY($3))
        AND ($4::text[] IS NULL OR s.creator_kind = 'user' AND s.creator_uid = ANY($4))
        AND ($5::timestamptz IS NULL OR t.created_at > $5) AND ($6::timestamptz IS NULL OR t.created_at < $6)
        AND ($7::timestamptz IS NULL OR ${changeOfTask} > $7)
        AND ($8::text IS NULL OR position(lower($8) IN lower(t.title)) > 0)
        AND (${value}, t.uid) ${order === 'asc' ? '>' : '<'} ($9::timestamptz, $10::text)
      ORDER BY ${value} ${order}, t.uid ${order} LIMIT $11`,
    row: taskRow,
  });
}

const pages = {
  created_at: { asc: definePage('created_at', 'asc'), desc: definePage('created_at', 'desc') },
  updated_at: { asc: definePage('updated_at', 'asc'), desc: definePage('updated_at', 'desc') },
};
const before = { asc: '-infinity', desc: 'infinity' } as const;

const readRunsOfConversations = defineStatement({
  name: 'read_runs_of_conversations_of_tasks',
  text: 'SELECT conversation_id, id FROM runs WHERE team_id = $1 AND conversation_id = ANY($2::uuid[])',
  row: { conversation_id: uuid, id: uuid },
});

async function outputsOfConversations(db: Queryable, teamId: string, tasks: readonly TaskRow[]) {
  const runs = await db.query(readRunsOfConversations, [teamId, tasks.map((task) => task.conversation_id)]);
  const inGroups = runs.map(({ conversation_id: group, id: runId }) => ({ group, runId }));
  const outputs = await readNewestOutputs(db, inGroups, maxListedTaskOutputs);
  return (task: TaskRow) => outputs.get(task.conversation_id) ?? [];
}

/** Returns one page of the tasks of a factory. The factory must exist. Returns null if the cursor was made for another list. */
export async function listTasks(
  db: Queryable,
  signer: CursorSigner,
  { teamId, factoryUid }: FactoryPlace,
  { cursor, limit, full_list, include_current_run, ...query }: ListFactoryTasksQuery,
): Promise<ListFactoryTasksResponse | null> {
  const identity = listIdentity(['tasks of factory', teamId, factoryUid, query]);
  const read = cursor === undefined ? undefined : readCursor(signer, identity, cursor);
  if (read?.ok === false) return null;
  const creators = query.created_by && (await uidsOfAddresses(db, teamId, query.created_by));
  const rows = await db.query(pages[query.sort_by][query.sort_order], [
    teamId,
    factoryUid,
    query.stage ?? null,
    creators ?? null,
    query.created_after ?? null,
    query.created_before ?? null,
    query.updated_after ?? null,
    query.q ?? null,
    read?.position.value ?? before[query.sort_order],
    read?.position.id ?? '',
    limit + 1,
  ]);
  const page = rows.slice(0, limit);
  const tasks = await toTasks(db, teamId, page, {
    ticket: full_list,
    currentRun: include_current_run,
    ...(full_list ? { outputsOf: await outputsOfConversations(db, teamId, page) } : {}),
  });
  const last = page.at(-1);
  const hasNext = rows.length > limit && last !== undefined;
  return {
    tasks,
    page_info: {
      has_next_page: hasNext,
      ...(hasNext ? { next_cursor: writeCursor(signer, identity, { value: last[query.sort_by], id: last.uid }) } : {}),
    },
  };
}
