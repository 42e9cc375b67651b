import { beforeEach, expect, test, vi } from 'vitest';
import { closeAtEnd } from '../../../../../../test/support/close-at-end.ts';
import { openTestExecutions } from '../../../../test/executions.ts';
import { indexRunWords } from './search-index.ts';

const service = closeAtEnd(await openTestExecutions());
beforeEach(async () => {
  await service.deps.db.query('DELETE FROM runs');
  await service.deps.db.query('DELETE FROM run_search_waiting');
});

const indexed = () => service.deps.db.query('SELECT run_id FROM run_search');
const waiting = async () => (await service.deps.db.query('SELECT unnest(run_ids) FROM run_search_waiting')).length;

/** Returns the runs whose index entry has these parts. */
const withParts = (parts: string) =>
  service.deps.db.query(
    `SELECT s.run_id FROM run_search s JOIN runs r ON r.id = s.run_id WHERE s.parts @@ replace($1, '@', search_mark(r.team_id))::tsquery`,
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

test('a run that is deleted while runs are indexed does not keep the others from the index', async () => {
  const { db } = service.deps;
  const [deleted, kept] = [await service.newRun(), await service.newRun()];
  const indexing = await db.transaction(async (tx) => {
    await tx.query('DELETE FROM runs WHERE id = $1', [deleted]);
    const round = { taken: indexRunWords(db, 10) };
    const waits = `SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`;
    await vi.waitFor(async () => expect(await db.query(waits)).toHaveLength(1), 60_000);
    return round;
  });
  expect(await indexing.taken).toBe(2);
  expect([await waiting(), await indexed()]).toEqual([0, [{ run_id: kept }]]);
});

test('a run that is being changed is indexed meanwhile', async () => {
  const { db } = service.deps;
  const id = await service.newRun({ title: 'Flaky build', prompt: 'Look at it' });
  await db.transaction(async (tx) => {
    await tx.query(`UPDATE runs SET updated_at = updated_at + interval '8 days' WHERE id = $1`, [id]);
    await indexRunWords(db, 10);
    expect(await waiting()).toBe(0);
  });
  const [own, inTitle, misspelt] = ["'@=look'", "'@~uild'", "'@?flky'"];
  expect(await withParts([own, inTitle, misspelt].join(' & '))).toEqual([{ run_id: id }]);
});

test('a search finds a run by the words of its changed title and not by the old words, even if the title was changed before the run was first indexed', async () => {
  const { db } = service.deps;
  const found = () => withParts("'@=second' & !'@=first'");
  const id = await service.newRun({ title: 'first' });
  await indexRunWords(db, 10);
  await db.query(`UPDATE runs SET title = 'second' WHERE id = $1`, [id]);
  expect(await found()).toHaveLength(1);
  const other = await service.newRun({ title: 'first' });
  await db.query(`UPDATE runs SET title = 'second' WHERE id = $1`, [other]);
  await indexRunWords(db, 10);
  expect(await found()).toHaveLength(2);
});
