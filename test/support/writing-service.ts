/**
 * Program for crash tests. Starts the embedded PostgreSQL in the folder ARGV[2], as the service does. Then eight loops insert rows,
 * and print the id of each row when the database has acknowledged it. The loops pause, so that they leave processor time to the
 * programs that a test kills and starts. The program ends when its standard input is closed.
 * Lines: `ready MILLISECONDS`, `row ID`.
 */
import { randomUUID } from 'node:crypto';
import { writeSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { silentLog } from '../../packages/service/src/platform/store/database/log.ts';
import { openDatabase } from '../../packages/service/src/platform/store/database/open-database.ts';
import { startEmbeddedPostgres } from '../../packages/service/src/platform/store/embedded/start.ts';

const folder = process.argv[2] ?? '';
const startedAt = performance.now();
const server = await startEmbeddedPostgres({ dataDir: folder, log: silentLog });
const db = await openDatabase({ address: server.connection, maxConnections: 8, log: silentLog });
await db.query('CREATE TABLE IF NOT EXISTS acknowledged (id uuid PRIMARY KEY, body text NOT NULL)');
writeSync(1, `ready ${Math.round(performance.now() - startedAt)}\n`);

let stopping = false;
const insert = { name: 'insert', text: 'INSERT INTO acknowledged VALUES ($1, $2)' };
const loops = Array.from({ length: 8 }, async () => {
  while (!stopping) {
    const id = randomUUID();
    try {
      await db.query(insert, [id, 'x'.repeat(300)]);
    } catch {
      continue;
    }
    writeSync(1, `row ${id}\n`);
    await delay(2);
  }
});
process.stdin.resume().on('end', async () => {
  stopping = true;
  await Promise.all(loops);
  await db.close();
  await server.stop();
  process.exit(0);
});
