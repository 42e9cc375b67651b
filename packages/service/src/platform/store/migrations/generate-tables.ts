/** Program: writes `tables.md` from the migrations. Run it after each new migration. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { openDatabase } from '../database/database.ts';
import { silentLog } from '../database/log.ts';
import { startEmbeddedPostgres } from '../embedded/start.ts';
import { migrateDatabase } from './migrate.ts';
import { renderTables } from './render-tables.ts';

const folder = await mkdtemp(path.join(tmpdir(), 'runyard-tables-'));
const server = await startEmbeddedPostgres({ dataDir: folder, log: silentLog });
try {
  const db = await openDatabase({ address: server.connection, maxConnections: 1, log: silentLog });
  await migrateDatabase(db);
  await writeFile(path.join(import.meta.dirname, 'tables.md'), await renderTables(db));
  await db.close();
} finally {
  await server.stop();
  await rm(folder, { recursive: true, force: true });
}
