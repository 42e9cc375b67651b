/**
 * Starts one PostgreSQL server for a whole test run: embedded and in a temporary folder, or the server that `TEST_DATABASE_URL` names.
 * Test processes inherit this variable, and `createTestDatabase` makes a database for each test on the server. Test processes also
 * inherit variables with the folders of `head-start.ts` and of compiled code.
 */
import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import pg from 'pg';
import { silentLog } from '../../packages/service/src/platform/store/database/log.ts';
import { startEmbeddedPostgres } from '../../packages/service/src/platform/store/embedded/start.ts';
import { compiledCodeVariable } from './compiled-code.ts';
import { headStartVariable } from './head-start.ts';

export async function setup(): Promise<() => Promise<void>> {
  const headStart = await mkdtemp(path.join(tmpdir(), 'runyard-head-start-'));
  process.env[headStartVariable] = headStart;
  process.env[compiledCodeVariable] = path.join(headStart, 'node');
  const removeHeadStart = () => rm(headStart, { recursive: true, force: true, maxRetries: 5 });
  const { TEST_DATABASE_URL: given } = process.env;
  if (given !== undefined) {
    const run = randomBytes(4).toString('hex');
    process.env.TEST_RUN = run;
    return async () => {
      await dropDatabases(given, `runyard_test_${run}_`);
      await removeHeadStart();
    };
  }
  const folder = await mkdtemp(path.join(tmpdir(), 'runyard-test-postgres-'));
  // All test files that run at the same time use this server, and each service that they start has a pool of its own.
  const server = await startEmbeddedPostgres({ dataDir: folder, log: silentLog, maxConnections: 300 });
  await saveWork(server.url);
  process.env.TEST_DATABASE_URL = server.url;
  return async () => {
    await server.stop();
    await rm(folder, { recursive: true, force: true });
    await removeHeadStart();
  };
}

/**
 * Settings of the server. Commits do not wait for the disk, because nothing stops the server in the middle of the tests. Autovacuum is
 * off, because it would take processor time for the several databases of each test process. A test that needs statistics makes them
 * itself.
 */
async function saveWork(server: string): Promise<void> {
  const client = new pg.Client({ connectionString: server });
  await client.connect();
  try {
    await client.query('ALTER ROLE ALL SET synchronous_commit = off');
    await client.query('ALTER SYSTEM SET autovacuum = off');
    await client.query('SELECT pg_reload_conf()');
  } finally {
    await client.end();
  }
}

/** Drops the databases that tests have kept for later tests. */
async function dropDatabases(server: string, prefix: string): Promise<void> {
  const client = new pg.Client({ connectionString: server });
  await client.connect();
  try {
    const { rows } = await client.query<{ name: string }>(
      'SELECT datname AS name FROM pg_database WHERE starts_with(datname, $1)',
      [prefix],
    );
    for (const { name } of rows) await client.query(`DROP DATABASE ${name} WITH (FORCE)`);
  } finally {
    await client.end();
  }
}
