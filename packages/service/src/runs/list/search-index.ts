import type { Database, Statement } from '../../store/database/database.ts';

/** What a process does in one turn: also with long prompts less than a second of one connection; under load more runs are created. */
export const runsPerTurn = 250;
/** What a search does itself before it looks. */
const runsBeforeSearch = 100;

/**
 * Long, but it locks no run against changes. The newest first: they are what is looked for soonest. Words that are there
 * were written when the run's text changed, and are newer than those that this statement sees.
 */
const takeWords: Statement = {
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
      SELECT r.id, r.team_id, run_hour(r.updated_at),
        mark_parts(search_mark(r.team_id, search_week(run_hour(r.updated_at))), search_parts(r.title, r.skill_spec, r.prompt))
      FROM (SELECT DISTINCT unnest(run_ids) AS run_id FROM taken) t JOIN runs r ON r.id = t.run_id
      ON CONFLICT (run_id) DO NOTHING
    )
    SELECT id, run_ids FROM taken`,
};

/**
 * The hour again, of runs that changed meanwhile: their triggers did not see the row of a transaction that goes on. With
 * the runs locked, a later change waits and then sees it. A run that is just changing waits for another turn: to wait for
 * its lock could be a deadlock.
 */
const settle: Statement = {
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
};

/**
 * Makes some `max` runs, the newest first, findable by their words (up to 99 more, where they were created together);
 * gives how many. Any number of processes may do it at once.
 */
export async function indexRunWords(db: Database, max: number): Promise<number> {
  return await db.transaction(async (tx) => {
    const taken = await tx.query<{ id: string; run_ids: string[] }>(takeWords, [max]);
    if (taken.length > 0) await tx.query(settle, [taken.map((row) => row.id)]);
    return taken.reduce((count, row) => count + row.run_ids.length, 0);
  });
}

const readWaiting: Statement = {
  name: 'read_search_waiting',
  text: 'SELECT FROM run_search_waiting LIMIT 1',
};

/** So that a run is found as soon as its creation was answered, unless many are created at once. */
export async function indexBeforeSearch(db: Database): Promise<void> {
  const waiting = await db.query(readWaiting);
  if (waiting.length > 0) await indexRunWords(db, runsBeforeSearch);
}
