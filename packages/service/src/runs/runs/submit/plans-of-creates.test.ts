import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { openTestExecutions, type TestExecutions } from '../../../../test/executions.ts';

let t: TestExecutions;
beforeAll(async () => {
  t = await openTestExecutions();
});
afterAll(() => t.close());

const tables = ['runs', 'run_requests', 'executions', 'run_events'];

test('creates on a new installation read no table whole, even before PostgreSQL has statistics', async ({ skip }) => {
  const { db } = t.deps;
  const [server] = await db.query<{ version: number }>("SELECT current_setting('server_version_num')::int AS version");
  if (server === undefined || server.version < 180_000)
    skip('older servers cannot forget the statistics of an empty table');
  const count = async () => {
    const [row] = await db.query<{ read: number; written: number }>(
      `SELECT sum(seq_tup_read)::int AS read, sum(n_tup_ins) FILTER (WHERE relname = 'runs')::int AS written
       FROM pg_stat_user_tables WHERE relname = ANY ($1)`,
      [tables],
    );
    return row ?? { read: 0, written: 0 };
  };
  const { written } = await count();
  /** Creates runs. Returns the rows that scans of whole tables have read, once PostgreSQL has counted `all` new runs. */
  const create = async (runs: number, all: number) => {
    await Promise.all(Array.from({ length: runs }, () => t.newRun()));
    return await vi.waitFor(async () => {
      const counted = await count();
      // A database that tests share may count a run of an earlier test late.
      expect(counted.written - written).toBeGreaterThanOrEqual(all);
      return counted.read;
    }, 60_000);
  };
  const before = await create(20, 20);
  expect((await create(200, 220)) - before).toBeLessThan(100);
});
