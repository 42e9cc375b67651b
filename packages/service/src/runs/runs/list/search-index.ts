import type { Database } from '../../../platform/store/database/database.ts';
import { defineStatement, integer, uuids } from '../../../platform/store/database/statement.ts';

/**
 * Number of runs that a process indexes at once. This takes less than a second, even with long prompts. Under load, more runs than this are
 * created in the same time.
 */
export const runsPerTurn = 250;
/** Maximum number of runs that a search indexes before it looks for words. */
const runsBeforeSearch = 100;

/**
 * This statement may take a long time, but it does not prevent changes of runs. It takes the newest runs first, because people search for
 * them most often. It does not replace words that exist: a change of the run's text wrote them, and they are newer than the text that this
 * statement sees. `FOR KEY SHARE` leaves out runs that are deleted meanwhile: an entry of such a run would fail, and with it all others.
 */
const takeWords = defineStatement({
  name: 'index_run_words',
  text: `
    WITH waiting AS MATERIALIZED (
      SELECT id, run_ids FROM run_search_waiting ORDER BY id DESC LIMIT $1 FOR UPDATE SKIP LOCKED
    ), taken AS MATERIALIZED (
      SELECT id, run_ids FROM (
        SELECT *, sum(cardinality(run_ids)) OVER (ORDER BY id DESC) - cardinality(run_ids) AS runs_before FROM waiting
      ) counted WHERE runs_before < $1
    ), words AS (
      INSERT INTO run_search (run_id, team_id, parts)
      SELECT r.id, r.team_id, array_to_tsvector(ARRAY(
        SELECT search_mark(r.team_id) || part FROM each_search_part(r.title, r.skill_spec, q.prompt) part))
      FROM runs r JOIN run_requests q ON q.run_id = r.id WHERE r.id = ANY (ARRAY(SELECT DISTINCT unnest(run_ids) FROM taken))
      FOR KEY SHARE OF r
      ON CONFLICT (run_id) DO NOTHING
    ), done AS (
      DELETE FROM run_search_waiting WHERE id IN (SELECT id FROM taken)
    )
    SELECT run_ids FROM taken`,
  row: { run_ids: uuids },
});

/**
 * Adds the words of all runs of `takeWords` to the index at once. So the long list of runs with a frequent word is written once, and not
 * once for each run. Until then, searches read these words from PostgreSQL's pending list.
 */
const addPending = defineStatement({
  name: 'add_pending_run_words',
  text: `SELECT gin_clean_pending_list('run_search_parts') AS pages`,
  row: { pages: integer },
});

/**
 * Indexes the words of about `max` runs, the newest first; up to 99 more if they were created together. Returns the number of indexed runs.
 * Any number of processes may call this function at the same time.
 */
export async function indexRunWords(db: Database, max: number): Promise<number> {
  return await db.transaction(async (tx) => {
    const taken = await tx.query(takeWords, [max]);
    if (taken.length > 0) await tx.query(addPending);
    return taken.reduce((count, row) => count + row.run_ids.length, 0);
  });
}

/** Returns a row if runs wait to be indexed. */
export const readWaiting = defineStatement({
  name: 'read_search_waiting',
  text: 'SELECT FROM run_search_waiting LIMIT 1',
  row: {},
});

/**
 * Indexes new runs before a search, so that the search finds a run right after its creation. If many runs are created at once, the search
 * may miss some.
 */
export async function indexBeforeSearch(db: Database): Promise<void> {
  const waiting = await db.query(readWaiting);
  if (waiting.length > 0) await indexRunWords(db, runsBeforeSearch);
}
