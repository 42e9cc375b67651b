/** Databases with the runs of `list-seed.ts` on an embedded PostgreSQL. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { Database } from '../packages/service/src/platform/store/database/database.ts';
import { silentLog } from '../packages/service/src/platform/store/database/log.ts';
import { openDatabase } from '../packages/service/src/platform/store/database/open-database.ts';
import { startEmbeddedPostgres } from '../packages/service/src/platform/store/embedded/start.ts';
import { migrateDatabase } from '../packages/service/src/platform/store/migrations/migrate.ts';
import { type Seeded, seedRuns } from './list-seed.ts';

export interface SeededDatabase {
  readonly db: Database;
  readonly url: string;
  readonly seeded: Seeded;
  remove(): Promise<void>;
}

/**
 * Opens an embedded PostgreSQL with `count` runs. If the variable BENCH_KEEP names a folder, keeps the database there for the next
 * benchmark, because filling it takes minutes.
 */
export async function openSeeded(count: number, maxConnections = 4): Promise<SeededDatabase> {
  const kept = process.env.BENCH_KEEP;
  const folder = kept ? path.join(kept, String(count)) : await mkdtemp(path.join(tmpdir(), 'runyard-bench-runs-'));
  mkdirSync(folder, { recursive: true });
  const server = await startEmbeddedPostgres({ dataDir: folder, log: silentLog });
  const db = await openDatabase({ address: { connectionString: server.url }, maxConnections, log: silentLog });
  await migrateDatabase(db);
  return {
    db,
    url: server.url,
    seeded: await fillOnce(db, count, path.join(folder, 'seeded.json')),
    remove: async () => {
      await db.close();
      await server.stop();
      if (!kept) await rm(folder, { recursive: true, force: true });
    },
  };
}

async function fillOnce(db: Database, count: number, file: string): Promise<Seeded> {
  const [row] = await db.query<{ is_filled: boolean }>('SELECT EXISTS (SELECT FROM runs) AS is_filled');
  if (row?.is_filled) return JSON.parse(readFileSync(file, 'utf8'));
  process.stderr.write(`filling ${count} runs\n`);
  const seeded = await seedRuns(db, count);
  await db.onOwnConnection((client) => client.query('VACUUM ANALYZE'));
  writeFileSync(file, JSON.stringify(seeded));
  return seeded;
}
