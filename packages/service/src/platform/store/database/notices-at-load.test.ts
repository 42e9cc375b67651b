import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { startEmbeddedPostgres } from '../embedded/start.ts';
import { silentLog } from './log.ts';
import { openDatabase } from './open-database.ts';

const clients = 32;
const commitsOfClient = 60;

/** The connections that wait for the lock that a commit with NOTIFY holds. */
const lockedCommits = "SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND wait_event = 'object'";

test('commits of many clients that notify another process share their writes to disk, and wait for no lock of the whole database', async () => {
  const dataDir = await mkdtemp(path.join(tmpdir(), 'runyard-notices-'));
  const server = await startEmbeddedPostgres({ dataDir, log: silentLog, maxConnections: 60 });
  const open = (maxConnections: number) =>
    openDatabase({ address: { connectionString: server.url }, maxConnections, log: silentLog });
  const watcher = await open(1);
  await watcher.query('CREATE TABLE loaded AS SELECT id, 0 AS n FROM generate_series(1, 1000) id');
  await watcher.query('ALTER TABLE loaded ADD PRIMARY KEY (id)');
  // On a fast disk, a write to disk is over before the next commit begins. With this delay it lasts as long as on a slow disk.
  await watcher.query('ALTER ROLE ALL SET commit_delay = 5000');
  await watcher.query('ALTER ROLE ALL SET commit_siblings = 0');
  const heard = new Set<string>();
  await watcher.listen('runyard_loaded', (id) => heard.add(id));
  /** The server counts the syncs of a connection at the latest when the connection ends. */
  const syncs = async () =>
    (await watcher.query<{ n: number }>("SELECT sum(fsyncs)::int AS n FROM pg_stat_io WHERE object = 'wal'"))[0]?.n ??
    0;
  const before = await syncs();
  const loading = await open(clients);
  let isOver = false;
  const update = { name: 'load', text: 'UPDATE loaded SET n = n + 1 WHERE id = $1 RETURNING id AS runyard_loaded' };
  const load = Array.from({ length: clients }, async (_, client) => {
    for (let n = 0; n < commitsOfClient; n += 1) await loading.query(update, [1 + ((client + clients * n) % 1000)]);
  });
  const loaded = Promise.all(load).finally(() => {
    isOver = true;
  });
  let waits = 0;
  while (!isOver) {
    waits += (await watcher.query(lockedCommits)).length;
    await delay(5);
  }
  await loaded;
  await loading.close();
  const perCommit = ((await syncs()) - before) / (clients * commitsOfClient);
  await expect.poll(() => heard.size).toBe(1000);
  await watcher.close();
  await server.stop();
  await rm(dataDir, { recursive: true, force: true });
  expect(waits).toBe(0);
  // 1 with the lock; 0.1 to 0.2 without it, more on a busy machine, which sends fewer commits at once.
  expect(perCommit).toBeLessThan(0.5);
}, 60_000);
