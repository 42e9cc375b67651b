/**
 * One PostgreSQL server for a whole test run: embedded, in a temporary folder, unless `TEST_DATABASE_URL` names one.
 * Test processes inherit the variable; `createTestDatabase` gives each test its own database there.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { silentLog } from '../../packages/service/src/store/database/log.ts';
import { startEmbeddedPostgres } from '../../packages/service/src/store/embedded/start.ts';

export async function setup(): Promise<() => Promise<void>> {
  if (process.env.TEST_DATABASE_URL !== undefined) return async () => undefined;
  const folder = await mkdtemp(path.join(tmpdir(), 'runyard-test-postgres-'));
  const server = await startEmbeddedPostgres({ dataDir: folder, log: silentLog });
  process.env.TEST_DATABASE_URL = server.url;
  return async () => {
    await server.stop();
    await rm(folder, { recursive: true, force: true });
  };
}
