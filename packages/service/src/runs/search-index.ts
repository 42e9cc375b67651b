import type { Database, Statement } from '../store/database.ts';

/** What a process does in one turn: 250 runs take some 100 ms of the database, and less than a second's creates under load. */
export const runsPerTurn = 250;
/** What a search does itself before it looks. */
const runsBeforeSearch = 100;

/** Long, but it locks no run against changes. The newest first: they are what is looked for soonest. */
const takeWords: Statement = {
  name: 'index_run_words',
  text: `
    WITH taken AS MATERIALIZED (
      SELECT run_id FROM run_search_queue ORDER BY run_id DESC LIMIT $1 FOR UPDATE SKIP LOCKED
    ), words AS (
      INSERT INTO run_search (run_id, team_id, updated_hour, heading, words)
      SELECT r.id, r.team_id, run_hour(r.updated_at), run_heading(r.title, r.skill_spec), run_words(r.title, r.skill_spec, r.prompt)
      FROM taken JOIN runs r ON r.id = taken.run_id
      ON CONFLICT (run_id) DO UPDATE SET heading = excluded.heading, words = excluded.words
    )
    SELECT run_id FROM taken`,
};

/**
 * The hour again, of runs that changed meanwhile: their triggers did not see the row of a transaction that goes on. With
 * the runs locked, a later change waits and then sees it. A run that is just changing stays for the next turn: to wait
 * for its lock could be a deadlock with the trigger that waits for its place in the queue.
 */
const settle: Statement = {
  name: 'settle_run_words',
  text: `
    WITH locked AS MATERIALIZED (
      SELECT id, updated_at FROM runs WHERE id = ANY($1::uuid[]) FOR NO KEY UPDATE SKIP LOCKED
    ), settled AS (
      UPDATE run_search s SET updated_hour = run_hour(locked.updated_at) FROM locked
      WHERE s.run_id = locked.id AND s.updated_hour <> run_hour(locked.updated_at)
    )
    DELETE FROM run_search_queue q WHERE q.run_id = ANY($1::uuid[])
      AND (q.run_id IN (SELECT id FROM locked) OR NOT EXISTS (SELECT FROM runs WHERE id = q.run_id))`,
};

/**
 * Makes up to `max` runs, the newest first, findable by their words; gives how many. Any number of processes may do it at
 * once. A run whose title or prompt changes meanwhile waits for another turn.
 */
export async function indexRunWords(db: Database, max: number): Promise<number> {
  return await db.transaction(async (tx) => {
    const taken = await tx.query<{ run_id: string }>(takeWords, [max]);
    if (taken.length > 0) await tx.query(settle, [taken.map((row) => row.run_id)]);
    return taken.length;
  });
}

const readWaiting: Statement = {
  name: 'read_search_queue',
  text: 'SELECT FROM run_search_queue LIMIT 1',
};

/** So that a run is found as soon as its creation was answered, unless many are created at once. */
export async function indexBeforeSearch(db: Database): Promise<void> {
  const waiting = await db.query(readWaiting);
  if (waiting.length > 0) await indexRunWords(db, runsBeforeSearch);
}
