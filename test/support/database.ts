/**
 * One PostgreSQL server for a whole test run: embedded, in a temporary folder, unless `TEST_DATABASE_URL` names one.
 * Test processes inherit the variable; `createTestDatabase` gives each test its own database there. They also inherit the folder
 * of `head-start.ts` and of compiled code.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { silentLog } from '../../packages/service/src/store/database/log.ts';
import { startEmbeddedPostgres } from '../../packages/service/src/store/embedded/start.ts';
import { headStartVariable } from './head-start.ts';

export async function setup(): Promise<() => Promise<void>> {
  const headStart = await mkdtemp(path.join(tmpdir(), 'runyard-head-start-'));
  process.env[headStartVariable] = headStart;
  process.env.NODE_COMPILE_CACHE ??= path.join(headStart, 'node');
  const removeHeadStart = () => rm(headStart, { recursive: true, force: true, maxRetries: 5 });
  if (process.env.TEST_DATABASE_URL !== undefined) return removeHeadStart;
  const folder = await mkdtemp(path.join(tmpdir(), 'runyard-test-postgres-'));
  const server = await startEmbeddedPostgres({ dataDir: folder, log: silentLog });
  process.env.TEST_DATABASE_URL = server.url;
  return async () => {
    await server.stop();
    await rm(folder, { recursive: true, force: true });
    await removeHeadStart();
  };
}
