/** The runs that `list.ts` searches: a million runs of one team. As in a real team, some values are frequent and most values are rare. */
import type pg from 'pg';
import type { Database } from '../packages/service/src/platform/store/database/database.ts';

export interface Seeded {
  readonly teamId: string;
  /** Ids of some runs that have descendants. */
  readonly ancestors: string[];
  /** Words of prompts, the most frequent first. */
  readonly vocabulary: string[];
}

/** Returns a generator of random numbers that repeats the same numbers for each seed (mulberry32). */
export function randomNumbers(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

const syllables =
  'ba ce di fo gu ha je ki lo mu na pe qui ro su ta ve wi xo zu ster ing tion ness ment ly ed er con pre'.split(' ');

/** Returns words that share beginnings and middles, like the words of a natural language. */
function makeVocabulary(random: () => number, size: number): string[] {
  const words = new Set<string>();
  while (words.size < size) {
    const length = 2 + Math.floor(random() * 3);
    words.add(Array.from({ length }, () => syllables[Math.floor(random() * syllables.length)]).join(''));
  }
  return [...words];
}

/** Returns a random number from 0 to `size` - 1: small numbers often, large numbers rarely. */
export const skewed = (random: () => number, size: number): number => Math.floor(size * random() ** 3);

const teamId = '01900000-0000-7000-8000-000000000001';

/** Returns an SQL expression for a random number with the same distribution as `skewed`. */
const rank = (n: number) => `floor(${n} * power(random(), 3))::int`;

/** Fills the tables of a migrated database with `count` runs. They were created during the last 180 days, the newest run a minute ago. */
export async function seedRuns(db: Database, count: number): Promise<Seeded> {
  const random = randomNumbers(7);
  const vocabulary = makeVocabulary(random, 20_000);
  const sentence = (words: number) =>
    Array.from({ length: words }, () => vocabulary[skewed(random, vocabulary.length)]).join(' ');
  const sentences = Array.from({ length: 5000 }, () => sentence(25));
  const titles = Array.from({ length: 5000 }, () => sentence(5));
  await db.onOwnConnection(async (client) => {
    // Disable triggers, including the checks of foreign keys, because these checks take longer than all other work. The rows are made
    // with correct references.
    await client.query(
      `SET session_replication_role = replica; SET maintenance_work_mem = '256MB'; SELECT setseed(0.5)`,
    );
    const createIndexes = await dropIndexes(client);
    await client.query(`INSERT INTO teams (id, uid, name) VALUES ($1, 'BenchBenchBenchBench22', 'Bench')`, [teamId]);
    await client.query(
      `CREATE TEMP TABLE texts AS SELECT n - 1 AS n, sentence, title, search_parts('', NULL, sentence) AS sentence_parts,
         search_parts(title, NULL, '') AS title_parts FROM unnest($1::text[], $2::text[]) WITH ORDINALITY u(sentence, title, n)`,
      [sentences, titles],
    );
    await client.query('ANALYZE texts');
    // One transaction, so that now() is the same in both statements.
    await client.query('BEGIN');
    await client.query(
      `CREATE TEMP TABLE drawn AS
        SELECT i, bench_id(i) AS id, bench_time(i) AS at, random() AS p, random() AS q, random() AS s, ${rank(200)} AS creator,
          ${rank(5000)} AS n1, ${rank(5000)} AS n2, ${rank(5000)} AS n3, ${rank(5000)} AS n4, (i::bigint * 7919 % 5000) AS n5
        FROM generate_series(1, $1::int) i`.replaceAll(...placesOf('$1')),
      [count],
    );
    await client.query('ANALYZE drawn');
    await client.query(
      `
      INSERT INTO runs (id, team_id, state, error_code, title, name, model_id, harness, environment_id, skill_spec, source,
        execution_location, creator_kind, creator_uid, executor_kind, executor_uid, parent_run_id, ancestor_ids, schedule_id,
        metadata, is_of_factory, conversation_id, current_execution_id, created_at, updated_at, started_at)
      SELECT id, $1::uuid,
        CASE WHEN i > $2 - 300 THEN (ARRAY['QUEUED', 'PENDING', 'CLAIMED', 'INPROGRESS'])[1 + i % 4]
          WHEN p < 0.0005 THEN 'BLOCKED' WHEN p < 0.78 THEN 'SUCCEEDED' WHEN p < 0.9 THEN 'FAILED' WHEN p < 0.94 THEN 'ERROR' ELSE 'CANCELLED' END,
        CASE WHEN i <= $2 - 300 AND p >= 0.78 AND p < 0.94
          THEN (ARRAY['environment_setup_failed', 'internal_error', 'budget_exceeded', 'resource_unavailable'])[1 + ${rank(4)}] END,
        t1.title || CASE WHEN i % 3 = 0 THEN ' #' || i ELSE '' END,
        CASE WHEN q < 0.5 THEN 'agent-' || ${rank(80)} END,
        CASE WHEN i < $2 / 10 THEN 'retired-model' ELSE 'model-' || ${rank(12)} END, 'oz',
        CASE WHEN i % 10 < 7 THEN CASE WHEN i < $2 / 5 AND i % 20 = 0 THEN 'env-retired' ELSE 'env-' || ${rank(40)} END END,
        CASE WHEN i % 5 < 2 THEN 'owner/repo:skills/skill-' || ${rank(300)} || '/SKILL.md' END,
        CASE WHEN p < 0.00001 THEN 'JIRA' WHEN p < 0.5 THEN 'API' WHEN p < 0.7 THEN 'CLI' WHEN p < 0.9 THEN 'SCHEDULED_AGENT' ELSE 'SLACK' END,
        CASE WHEN q < 0.03 THEN 'LOCAL' ELSE 'REMOTE' END,
        'user', 'user-' || creator, CASE WHEN q < 0.05 THEN 'service_account' ELSE 'user' END,
        CASE WHEN q < 0.05 THEN 'account-' || i % 7 ELSE 'user-' || creator END,
        NULL, CASE WHEN i > 20 AND i % 20 BETWEEN 1 AND 3 THEN ARRAY[bench_id(i - i % 20)] ELSE '{}' END,
        CASE WHEN p BETWEEN 0.7 AND 0.9 THEN ('01900000-0000-7000-8000-1' || lpad((${rank(60)})::text, 11, '0'))::uuid END,
        CASE WHEN i % 10 < 6 THEN jsonb_build_object('repository', 'owner/repository-' || ${rank(60)}, 'stage', (ARRAY['prod', 'test', 'dev'])[1 + ${rank(3)}])
          || CASE WHEN i % 10 < 3 THEN jsonb_build_object('ticket', 'T-' || i) ELSE '{}' END
          || CASE WHEN i BETWEEN $2 / 4 AND $2 / 4 + $2 / 50 THEN jsonb_build_object('campaign', 'last-summer') ELSE '{}' END
          || CASE WHEN i % 20 = 5 THEN jsonb_build_object('factory_uid', 'factory-' || i / 20 % 8) ELSE '{}' END ELSE '{}' END,
        i % 20 = 5, id, id, at,
        least(now(), at + CASE WHEN s < 0.9 THEN random() * interval '30 minutes' WHEN s < 0.98 THEN random() * interval '10 hours'
          WHEN s < 0.995 THEN random() * interval '4 days' ELSE random() * interval '100 days' END), at
      FROM drawn
      JOIN texts s1 ON s1.n = n1 JOIN texts s2 ON s2.n = n2 JOIN texts s3 ON s3.n = n3 JOIN texts s4 ON s4.n = n4 JOIN texts t1 ON t1.n = n5`.replaceAll(
        ...placesOf('$2'),
      ),
      [teamId, count],
    );
    await client.query(`
      INSERT INTO run_requests (run_id, prompt, contents)
      SELECT id, s1.sentence || '. ' || s2.sentence || '. ' || s3.sentence || '.' || CASE WHEN i % 2 = 0 THEN ' ' || s4.sentence || '. TICKET-' || i ELSE '' END,
        CASE WHEN i % 20 = 5 THEN '[{"kind": "definition"}]' ELSE '[]' END::jsonb
      FROM drawn JOIN texts s1 ON s1.n = n1 JOIN texts s2 ON s2.n = n2 JOIN texts s3 ON s3.n = n3 JOIN texts s4 ON s4.n = n4`);
    await client.query('COMMIT');
    await client.query(`
      INSERT INTO executions (id, run_id, team_id, number, phase, pool, depth, queued_at, claimed_at, finished_at, ended_at)
      SELECT id, id, team_id, 1, CASE WHEN state = 'QUEUED' THEN 'queued' WHEN state IN ('PENDING', 'CLAIMED', 'INPROGRESS') THEN 'running' ELSE 'ended' END,
        '', cardinality(ancestor_ids), created_at, created_at, updated_at, updated_at FROM runs`);
    await client.query(`UPDATE runs SET in_sandbox = true WHERE state IN ('PENDING', 'CLAIMED', 'INPROGRESS')`);
    await client.query(
      `INSERT INTO artifacts (id, team_id, run_id, execution_id, conversation_id, artifact_type, data, is_ready)
       SELECT gen_random_uuid(), team_id, id, id, id,
         CASE WHEN n % 1000 = 0 THEN 'SCREENSHOT' WHEN n < $1 / 20 AND n % 2 = 0 THEN 'EXTERNAL_REFERENCE'
           ELSE (ARRAY['PLAN', 'PULL_REQUEST', 'FILE'])[1 + n % 3] END, '{"title": "x", "url": "https://code.example/o/r/pull/7", "branch": "b", "filename": "x"}', true
       FROM (SELECT id, team_id, row_number() OVER () AS n FROM runs) r WHERE n % 4 = 0`,
      [count],
    );
    await client.query(`
      UPDATE runs r SET artifact_types = a.types FROM (
        SELECT run_id, array_agg(DISTINCT artifact_type) AS types FROM artifacts WHERE is_ready GROUP BY run_id) a WHERE a.run_id = r.id`);
    await client.query(fillSearch);
    await client.query(createIndexes);
  });
  const parents = await db.query<{ id: string }>(
    'SELECT ancestor_ids[1] AS id FROM (SELECT ancestor_ids FROM runs WHERE ancestor_ids <> $1 LIMIT 3000) r WHERE random() < 0.1 LIMIT 100',
    ['{}'],
  );
  return { teamId, ancestors: parents.map(({ id }) => id), vocabulary };
}

const timeAt = (i: string, count: string) =>
  `(now() - interval '1 minute' - (${count}::int - (${i})) * (interval '180 days' / ${count}::int))`;
/** Returns an SQL expression for a UUID version 7 that contains the time of the run with the number `i`. */
const idAt = (i: string, count: string) =>
  `(lpad(to_hex((extract(epoch FROM ${timeAt(i, count)}) * 1000)::bigint), 12, '0') || '7000' || '8000' || lpad(to_hex(${i}), 12, '0'))::uuid`;
/**
 * Returns the arguments with which `replaceAll` puts SQL in place of `bench_id(i)` and `bench_time(i)`. `count` is the SQL placeholder of
 * the number of runs.
 */
const placesOf = (count: string): [RegExp, (text: string, what: string, i: string) => string] => [
  /bench_(id|time)\((.*?)\)(?=[,\]]| AS)/g,
  (_, what, i) => (what === 'id' ? idAt(i, count) : timeAt(i, count)),
];

/**
 * Drops the indexes of the tables that the list reads. Returns the statements that create the indexes again, which is faster after all
 * rows are inserted.
 */
async function dropIndexes(client: pg.ClientBase): Promise<string> {
  const { rows } = await client.query<{ name: string; definition: string }>(`
    SELECT i.indexrelid::regclass::text AS name, pg_get_indexdef(i.indexrelid) AS definition FROM pg_index i
    WHERE i.indrelid IN ('runs'::regclass, 'run_search'::regclass) AND NOT i.indisunique`);
  await client.query(`DROP INDEX ${rows.map(({ name }) => name).join()}`);
  return rows.map(({ definition }) => definition).join(';\n');
}

/**
 * Writes the search index of all runs, which the search's background loop writes for single runs. Combines the stored search parts of
 * each run's texts, because computing the parts again takes 1 ms for each run.
 */
const fillSearch = `
  INSERT INTO run_search (run_id, team_id, parts)
  SELECT r.id, r.team_id, mark_parts(search_mark(r.team_id),
    s1.sentence_parts || s2.sentence_parts || s3.sentence_parts || t1.title_parts || k.parts
      || CASE WHEN i % 2 = 0 THEN s4.sentence_parts ELSE '{}' END
      || search_parts(CASE WHEN i % 3 = 0 THEN i::text ELSE '' END, NULL, CASE WHEN i % 2 = 0 THEN 'TICKET-' || i ELSE '' END))
  FROM drawn JOIN runs r USING (id)
  JOIN texts s1 ON s1.n = n1 JOIN texts s2 ON s2.n = n2 JOIN texts s3 ON s3.n = n3 JOIN texts s4 ON s4.n = n4 JOIN texts t1 ON t1.n = n5
  JOIN (SELECT skill, search_parts('', skill, '') AS parts FROM (SELECT DISTINCT skill_spec AS skill FROM runs) s OFFSET 0) k
    ON k.skill IS NOT DISTINCT FROM r.skill_spec`;
