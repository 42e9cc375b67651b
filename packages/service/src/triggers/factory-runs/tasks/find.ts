/** Finds tasks in all factories of a team: by a text in the title, or by a reference to their work. */
import type { FactoryTask, SearchFactoryTasksQuery } from '@runyard/contract/factories/factory-tasks';
import type { Queryable } from '../../../platform/store/database/database.ts';
import { defineStatement } from '../../../platform/store/database/statement.ts';
import { isUuid } from '../../../platform/store/database/uuid.ts';
import { toWholeTask } from './read.ts';
import { fromTasks, taskColumns, taskRow, toTasks } from './task-row.ts';

const search = defineStatement({
  name: 'search_tasks_of_team',
  text: `
    SELECT ${taskColumns} ${fromTasks} WHERE t.team_id = $1 AND position(lower($2) IN lower(t.title)) > 0
    ORDER BY t.created_at DESC, t.uid LIMIT $3`,
  row: taskRow,
});

/** SQL: the conversation of the highest run above the run `x`, or of the run itself. */
const rootConversation = `(
      SELECT a.conversation_id FROM runs a WHERE a.id = coalesce(x.ancestor_ids[cardinality(x.ancestor_ids)], x.id))`;

/** $2: the reference. $3: the id of a run in it; NULL: it has none. The index of run facets finds the runs with pull requests. */
const find = defineStatement({
  name: 'find_task_by_reference',
  text: `
    SELECT ${taskColumns} ${fromTasks} WHERE t.team_id = $1 AND (
      t.uid = $2 OR s.metadata->>'ticket_ref' = $2 OR s.metadata->>'ticket_url' = $2 OR s.metadata->>'ticket_id' = $2
      OR (s.metadata->>'ticket_source') || ':' || (s.metadata->>'ticket_id') = $2
      OR t.conversation_id = (SELECT ${rootConversation} FROM runs x WHERE x.team_id = $1 AND x.id = $3::uuid)
      OR t.conversation_id IN (SELECT ${rootConversation}
        FROM runs x JOIN artifacts p ON p.run_id = x.id AND p.artifact_type = 'PULL_REQUEST'
        WHERE x.team_id = $1 AND x.facets @> ARRAY[run_facet($1, 'artifact_type=PULL_REQUEST')]
          AND (p.data->>'url' = $2 OR p.data->>'branch' = $2)))
    ORDER BY t.created_at DESC, t.uid LIMIT 1`,
  row: taskRow,
});

/** Returns the tasks of the team with a text in their titles, the last created first. */
export async function searchTasks(
  db: Queryable,
  teamId: string,
  { q, limit }: SearchFactoryTasksQuery,
): Promise<FactoryTask[]> {
  const rows = await db.query(search, [teamId, q, limit]);
  return await toTasks(db, teamId, rows, { ticket: true, currentRun: true });
}

/** Returns the last part of the path of an address, or the whole text if it is no address. */
function lastPartOf(reference: string): string {
  const path = URL.parse(reference)?.pathname.replace(/\/+$/, '');
  return path?.split('/').at(-1) ?? reference;
}

/** Returns the task that a reference names; null if the team has none. `reference` may be any text. */
export async function findTaskByReference(
  db: Queryable,
  teamId: string,
  reference: string,
): Promise<FactoryTask | null> {
  const wanted = reference.trim();
  const last = lastPartOf(wanted);
  const read = async (text: string) => (await db.query(find, [teamId, text, isUuid(last) ? last : null]))[0];
  const row = (await read(wanted)) ?? (last === wanted ? undefined : await readPage(wanted, last, read));
  return row ? await toWholeTask(db, teamId, row) : null;
}

/** The page of a task ends with its UID. The last part of other addresses, such as a number of an issue, names nothing by itself. */
const readPage = async <T>(
  address: string,
  last: string,
  read: (text: string) => Promise<T>,
): Promise<T | undefined> => (/\/tasks\/[A-Za-z0-9]{22}\/*$/.test(address) ? await read(last) : undefined);
