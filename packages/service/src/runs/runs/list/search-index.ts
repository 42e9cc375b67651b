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
 * statement sees.
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
      INSERT INTO run_search (run_id, team_id, updated_hour, parts)
      SELECT r.id, r.team_id, r.hour, array_to_tsvector(ARRAY(
        SELECT r.mark || part FROM each_search_part(r.title, r.skill_spec, r.prompt) part))
      FROM (
        SELECT id, team_id, title, skill_spec, prompt, run_hour(updated_at) AS hour,
          search_mark(team_id, search_week(run_hour(updated_at))) AS mark
        FROM runs WHERE id = ANY (ARRAY(SELECT DISTINCT unnest(run_ids) FROM taken)) OFFSET 0
      ) r
      ON CONFLICT (run_id) DO NOTHING
    )
    SELECT id, run_ids FROM taken`,
  row: { id: integer, run_ids: uuids },
});

/**
 * Corrects the hour of runs that changed during `takeWords`: the triggers of these changes could not see the uncommitted rows of
 * `takeWords`. The locks make later changes wait until they can see these rows. A run that another transaction is changing stays
 * queued for the next round, because waiting for its lock could cause a deadlock.
 */
const settle = defineStatement({
  name: 'settle_run_words',
  text: `
    WITH taken AS (
      SELECT DISTINCT unnest(run_ids) AS run_id FROM run_search_waiting WHERE id = ANY($1::bigint[])
    ), locked AS MATERIALIZED (
      SELECT id, updated_at FROM runs WHERE id IN (SELECT run_id FROM taken) FOR NO KEY UPDATE SKIP LOCKED
    ), settled AS (
      UPDATE run_search s SET updated_hour = run_hour(locked.updated_at),
        parts = move_parts(s.parts, s.team_id, s.updated_hour, run_hour(locked.updated_at)) FROM locked
      WHERE s.run_id = locked.id AND s.updated_hour <> run_hour(locked.updated_at)
    ), done AS (
      DELETE FROM run_search_waiting WHERE id = ANY($1::bigint[])
    )
    INSERT INTO run_search_waiting (run_ids)
    SELECT array_agg(run_id) FROM taken
    WHERE run_id NOT IN (SELECT id FROM locked) AND EXISTS (SELECT FROM runs WHERE id = taken.run_id)
    HAVING count(*) > 0`,
  row: {},
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
    if (taken.length > 0) {
      await tx.query(settle, [taken.map((row) => row.id)]);
      await tx.query(addPending);
    }
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
