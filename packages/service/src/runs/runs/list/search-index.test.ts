import { randomUUIDv7 } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { openTestExecutions, type TestExecutions } from '../../../../test/executions.ts';
import { indexRunWords } from './search-index.ts';

let service: TestExecutions;
beforeAll(async () => {
  service = await openTestExecutions();
});
afterAll(() => service.close());
beforeEach(async () => {
  await service.deps.db.query('DELETE FROM runs');
  await service.deps.db.query('DELETE FROM run_search_waiting');
});

const indexed = () =>
  service.deps.db.query(
    'SELECT run_id, updated_hour = run_hour(r.updated_at) AS "isInHour" FROM run_search s JOIN runs r ON r.id = s.run_id',
  );
const waiting = async () => (await service.deps.db.query('SELECT unnest(run_ids) FROM run_search_waiting')).length;

/** Returns the runs whose index entry has these parts and the week of the run's last change. */
const withParts = (parts: string) =>
  service.deps.db.query(
    `SELECT s.run_id FROM run_search s JOIN runs r ON r.id = s.run_id
     WHERE s.parts @@ replace($1, '@', search_mark(r.team_id, search_week(r.updated_at)))::tsquery`,
    [parts],
  );

test('each new run is indexed once, even if several processes index runs', async () => {
  const { db } = service.deps;
  for (let i = 0; i < 30; i += 1) await service.newRun();
  const taken = await Promise.all(Array.from({ length: 4 }, () => indexRunWords(db, 10)));
  expect(taken.reduce((sum, count) => sum + count, 0) + (await waiting())).toBe(30);
  while ((await indexRunWords(db, 10)) > 0);
  expect(await indexed()).toHaveLength(30);
  expect(await waiting()).toBe(0);
});

test("indexing leaves no words in PostgreSQL's pending list, because each search would read this list", async () => {
  const { db } = service.deps;
  for (let i = 0; i < 3; i += 1) await service.newRun();
  expect(await indexRunWords(db, 10)).toBe(3);
  const left = await db.query(`SELECT gin_clean_pending_list('run_search_parts')::integer AS pages`);
  expect(left).toEqual([{ pages: 0 }]);
});

test('a run that was deleted before it was indexed is removed from the queue', async () => {
  const { db } = service.deps;
  await service.newRun();
  await db.query('DELETE FROM runs');
  expect(await indexRunWords(db, 10)).toBe(1);
  expect([await waiting(), await indexed()]).toEqual([0, []]);
});

test('a run that is being changed stays in the queue, and the next round indexes it under the hour of its change', async () => {
  const { db } = service.deps;
  const id = await service.newRun();
  await db.transaction(async (tx) => {
    await tx.query(`UPDATE runs SET updated_at = updated_at + interval '3 hours' WHERE id = $1`, [id]);
    await indexRunWords(db, 10);
    expect(await waiting()).toBe(1);
  });
  await indexRunWords(db, 10);
  expect(await waiting()).toBe(0);
  expect(await indexed()).toEqual([{ run_id: id, isInHour: true }]);
});

test('each later change of a run moves its words, metadata and artifacts to the hour of the change', async () => {
  const { db } = service.deps;
  const parent = await service.newRun();
  const id = await service.newRun({ metadata: { a: 'b' }, parentRunId: parent, ancestorIds: [parent] });
  await db.query(
    `INSERT INTO artifacts (id, team_id, run_id, execution_id, conversation_id, artifact_type, data, is_ready)
     VALUES ($1, $2, $3, $3, $3, 'PLAN', '{}', true)`,
    [randomUUIDv7(), service.teamId, id],
  );
  await indexRunWords(db, 10);
  await db.query(`UPDATE runs SET updated_at = updated_at + interval '5 hours' WHERE id = $1`, [id]);
  const facets = await db.query(
    `SELECT split_part(facet, ':', 1) AS kind FROM run_facets f JOIN runs r ON r.id = f.run_id AND f.updated_hour = run_hour(r.updated_at)
     WHERE run_id = $1 ORDER BY 1`,
    [id],
  );
  expect(facets.map(({ kind }) => kind)).toEqual(['ancestor', 'artifact', 'metadata']);
  expect((await indexed()).map(({ isInHour }) => isInHour)).toEqual([true, true]);
});

test('a change of a run moves all its parts to the week of the change', async () => {
  const { db } = service.deps;
  const id = await service.newRun({ title: 'Flaky build', prompt: 'Look at it' });
  const marks = () => db.query('SELECT DISTINCT left(part, 6) FROM run_search, unnest(tsvector_to_array(parts)) part');
  const [own, inTitle, misspelt] = ["'@=look'", "'@~uild'", "'@?flky'"];
  await indexRunWords(db, 10);
  for (const _ of [1, 2]) {
    expect(await marks()).toHaveLength(1);
    expect(await withParts([own, inTitle, misspelt].join(' & '))).toEqual([{ run_id: id }]);
    await db.query(`UPDATE runs SET updated_at = updated_at + interval '8 days' WHERE id = $1`, [id]);
  }
});

test('a search finds a run by the words of its changed prompt and not by the old words, even if the prompt was changed before the run was first indexed', async () => {
  const { db } = service.deps;
  const found = () => withParts("'@=second' & !'@=first'");
  const id = await service.newRun({ prompt: 'first' });
  await indexRunWords(db, 10);
  await db.query(`UPDATE runs SET prompt = 'second' WHERE id = $1`, [id]);
  expect(await found()).toHaveLength(1);
  const other = await service.newRun({ prompt: 'first' });
  await db.query(`UPDATE runs SET prompt = 'second' WHERE id = $1`, [other]);
  await indexRunWords(db, 10);
  expect(await found()).toHaveLength(2);
});

test('if several runs were created together, only the run that is being changed stays in the queue', async () => {
  const { db } = service.deps;
  const ids = await Promise.all(Array.from({ length: 20 }, () => service.newRun()));
  await db.transaction(async (tx) => {
    await tx.query('UPDATE runs SET updated_at = updated_at WHERE id = $1', [ids[7]]);
    while ((await indexRunWords(db, 100)) > 1);
    expect(await db.query('SELECT run_ids FROM run_search_waiting')).toEqual([{ run_ids: [ids[7]] }]);
  });
  await indexRunWords(db, 100);
  expect(await waiting()).toBe(0);
  expect(await indexed()).toHaveLength(20);
});
