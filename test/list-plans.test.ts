import { RunCountsQuery } from '@runyard/contract/runs/run-counts';
import { ListRunsQuery } from '@runyard/contract/runs/run-list';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { casesOf, type Make, sorts } from '../bench/list-cases.ts';
import { randomNumbers, type Seeded, seedRuns } from '../bench/list-seed.ts';
import type { Database } from '../packages/service/src/platform/store/database/database.ts';
import { silentLog } from '../packages/service/src/platform/store/database/log.ts';
import { openDatabase } from '../packages/service/src/platform/store/database/open-database.ts';
import { migrateDatabase } from '../packages/service/src/platform/store/migrations/migrate.ts';
import { countRuns } from '../packages/service/src/runs/runs/list/count.ts';
import { listRuns } from '../packages/service/src/runs/runs/list/list.ts';
import { createEmptyDatabase } from '../packages/service/test/database.ts';
import { isLong } from './support/long.ts';
import { naiveList } from './support/naive-list.ts';
import { observeBuffers, observeScans } from './support/observed-plans.ts';

/**
 * Number of runs in the table. With so many rows, PostgreSQL's planner uses indexes instead of a scan of the table. More rows would
 * only take time, because inserting the search words of a run takes about 1 ms.
 */
const count = 5_000;
/** Number of queries for each filter. The first queries filter by a value that no run has, the next ones by frequent values. */
const tries = isLong ? 8 : 3;
const runTables = ['runs', 'run_search'];

let database: Awaited<ReturnType<typeof createEmptyDatabase>>;
let db: Database;
let seeded: Seeded;
beforeAll(async () => {
  database = await createEmptyDatabase();
  db = await openDatabase({ address: { connectionString: database.url }, maxConnections: 2, log: silentLog });
  await migrateDatabase(db);
  seeded = await seedRuns(db, count);
  await db.onOwnConnection((client) => client.query('VACUUM ANALYZE'));
}, 300_000);
afterAll(async () => {
  await db.close();
  await database.drop();
});

/** Returns a database that forwards queries and adds to `scanned` the tables that their plans read completely. */
const observed = (scanned: Set<string>): Database => observeScans(db, runTables, scanned);

const context = () => ({ teamId: seeded.teamId, teamUid: 'BenchBenchBenchBench22', baseUrl: '' });
const signer = { sign: () => 'signature', verify: () => true };

/** Returns the tables that any query with the filter reads completely, for its first or second page. */
async function scannedBy(make: Make, sort: (typeof sorts)[number]): Promise<string[]> {
  const scanned = new Set<string>();
  const random = randomNumbers(3);
  for (let n = 0; n < tries; n += 1) {
    const query = { ...make(n, random), limit: 50, sort_by: sort[0], sort_order: sort[1] };
    let cursor: string | undefined;
    for (let page = 0; page < 2; page += 1) {
      const outcome = await listRuns(observed(scanned), signer, context(), ListRunsQuery.parse({ ...query, cursor }));
      if (outcome.kind !== 'ok') throw new Error(JSON.stringify(outcome));
      cursor = outcome.page.page_info.next_cursor;
      if (cursor === undefined) break;
    }
  }
  return [...scanned];
}

test('the helper that observes query plans reports a scan of a whole table', async () => {
  const scanned = new Set<string>();
  await observed(scanned).query('SELECT count(*) FROM runs WHERE harness = $1', ['x']);
  expect([...scanned]).toEqual(['runs']);
});

test.each(sorts.map(([by, order]) => ({ by, order })))(
  'the list of runs reads no whole table to sort by $by $order',
  async ({ by, order }) => {
    expect(await scannedBy(() => ({}), [by, order])).toEqual([]);
  },
);

test('the list of runs reads no whole table for any filter, sorted by the time of changes in either order', async () => {
  const found: Record<string, string[]> = {};
  for (const [filter, make] of Object.entries(casesOf(seeded, count))) {
    for (const sort of sorts.slice(0, 2)) {
      const scanned = await scannedBy(make, sort);
      if (scanned.length > 0) found[`${filter} ${sort[1]}`] = scanned;
    }
  }
  expect(found).toEqual({});
}, 300_000);

test('a list reads at most the pages of the narrow table and 3,100 others to find its runs, with any filter and sort', async () => {
  const [table] = await db.query<{ pages: number }>(`SELECT relpages AS pages FROM pg_class WHERE relname = 'runs'`);
  /** Pages that 50 found runs take with all that the page shows of them, and the 300 runs that are queued or in a sandbox. */
  const shown = 2_000;
  const most = (table?.pages ?? 0) + 3_100 + shown;
  const found: Record<string, number> = {};
  for (const [filter, make] of Object.entries(casesOf(seeded, count))) {
    for (const [sort_by, sort_order] of sorts) {
      let pages = 0;
      const counting = observeBuffers(db, (read) => {
        pages += read;
      });
      const query = ListRunsQuery.parse({
        ...make(1, randomNumbers(5)),
        view: 'summary',
        limit: 50,
        sort_by,
        sort_order,
      });
      const outcome = await listRuns(counting, signer, context(), query);
      if (outcome.kind !== 'ok') throw new Error(JSON.stringify(outcome));
      if (pages > most) found[`${filter} by ${sort_by} ${sort_order}`] = pages;
    }
  }
  expect(found).toEqual({});
}, 300_000);

test('the counts of runs read no whole table for any filter, for all time and for one day', async () => {
  const found: Record<string, string[]> = {};
  const created_after = new Date(Date.now() - 86_400_000).toISOString();
  for (const [filter, make] of Object.entries(casesOf(seeded, count))) {
    const scanned = new Set<string>();
    for (const more of [{}, { created_after, step: '15m' }]) {
      const query = RunCountsQuery.parse({ ...make(1, randomNumbers(3)), ...more });
      const outcome = await countRuns(observed(scanned), seeded.teamId, query, new Date());
      if (outcome.kind !== 'ok') throw new Error(JSON.stringify(outcome));
    }
    if (scanned.size > 0) found[filter] = [...scanned];
  }
  expect(found).toEqual({});
}, 300_000);

test('the list of runs returns for each filter the same runs as a check of all runs, sorted by the time of changes in either order', async () => {
  const wrong: unknown[] = [];
  for (const [filter, make] of Object.entries(casesOf(seeded, count))) {
    const random = randomNumbers(5);
    for (let n = 0; n < (isLong ? 4 : 2); n += 1) {
      const order = n % 2 === 0 ? 'desc' : 'asc';
      const query = { ...make(n, random), limit: 50, sort_order: order };
      const listed: string[] = [];
      let cursor: string | undefined;
      for (let page = 0; page < 3; page += 1) {
        const outcome = await listRuns(db, signer, context(), ListRunsQuery.parse({ ...query, cursor }));
        if (outcome.kind !== 'ok') throw new Error(JSON.stringify(outcome));
        listed.push(...outcome.page.runs.map((run) => run.run_id));
        cursor = outcome.page.page_info.next_cursor;
        if (cursor === undefined) break;
      }
      const expected = await db.transaction(async (tx) => {
        await tx.query('SET LOCAL statement_timeout = 0');
        return await naiveList(tx, seeded.teamId, ListRunsQuery.parse(query), 150);
      });
      if (listed.join() !== expected.join()) wrong.push([filter, query, listed.length, expected.length]);
    }
  }
  expect(wrong).toEqual([]);
}, 300_000);
