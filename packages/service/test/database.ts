/** Test support: a fresh, migrated database for each test, on the server that `TEST_DATABASE_URL` names. */
import { createHash, randomBytes } from 'node:crypto';
import pg from 'pg';
import type { DatabaseConfig } from '../src/platform/store/database/connections.ts';
import type { Database } from '../src/platform/store/database/database.ts';
import { silentLog } from '../src/platform/store/database/log.ts';
import { openDatabase } from '../src/platform/store/database/open-database.ts';
import { migrateDatabase, readMigrations } from '../src/platform/store/migrations/migrate.ts';
import { lend } from './lent-database.ts';
import { keepSpare, notePristine, type SpareDatabase, spareConnections, takeSpare } from './spare-databases.ts';

export interface TestDatabase {
  readonly db: Database;
  readonly url: string;
  /** Closes `db`. Then empties the database for another test, or removes it, even if it has other connections. */
  drop(): Promise<void>;
}

const dropListeners: ((url: string) => Promise<void>)[] = [];

/** Calls `listener` with the URL of each database that a test drops. A later test may get an emptied database with the same URL. */
export const onDrop = (listener: (url: string) => Promise<void>): void => void dropListeners.push(listener);

async function noteDrop(url: string): Promise<void> {
  for (const listener of dropListeners) await listener(url);
}

/**
 * Returns a migrated database without data: the emptied database of an ended test with its open connections, or a copy of a template.
 * The first call on a server creates and migrates the template. Under vitest, the
 * server is an embedded PostgreSQL of this test run (`test/support/database.ts`), or the server of `TEST_DATABASE_URL`. The user in
 * that URL must be allowed to create databases.
 */
export async function createTestDatabase(options: { maxConnections?: number } = {}): Promise<TestDatabase> {
  const server = process.env.TEST_DATABASE_URL;
  if (server === undefined)
    throw new Error('TEST_DATABASE_URL is not set: run tests with vitest, which starts a server');
  const spare = takeSpare() ?? (await createFromTemplate(server));
  const { url } = spare;
  const db =
    options.maxConnections === undefined ? lend(spare.db) : await connect(url, options.maxConnections, 'runyard');
  return {
    db,
    url,
    drop: async () => {
      await db.close();
      await noteDrop(url);
      if (await keepSpare(spare)) return;
      await spare.db.close();
      await dropDatabase(server, new URL(url).pathname.slice(1));
    },
  };
}

async function createFromTemplate(server: string): Promise<SpareDatabase> {
  const name = newName();
  await administer(server, async (client) => {
    const template = await ensureTemplate(client, server);
    await client.query(`CREATE DATABASE ${name} TEMPLATE ${template}`);
  });
  const url = urlOf(server, name);
  const spare = { url, db: await connect(url, 10, spareConnections) };
  await notePristine(spare);
  return spare;
}

function configOf(url: string, maxConnections: number, application: string): DatabaseConfig {
  const address = new URL(url);
  address.searchParams.set('application_name', application);
  return { address: { connectionString: address.href }, maxConnections, log: silentLog };
}

const connect = (url: string, maxConnections: number, application: string): Promise<Database> =>
  openDatabase(configOf(url, maxConnections, application));

/** The name contains the id of the test run, because `test/support/database.ts` drops all databases of a test run at its end. */
const newName = () => `runyard_test_${process.env.TEST_RUN ?? process.pid}_${randomBytes(5).toString('hex')}`;

/** Creates a database without any table. */
export async function createEmptyDatabase(
  server = process.env.TEST_DATABASE_URL ?? '',
): Promise<{ url: string; drop(): Promise<void> }> {
  const name = newName();
  await administer(server, (client) => client.query(`CREATE DATABASE ${name} TEMPLATE template0 ENCODING 'UTF8'`));
  const url = urlOf(server, name);
  return {
    url,
    drop: async () => {
      await noteDrop(url);
      await dropDatabase(server, name);
    },
  };
}

/**
 * Returns the name of the migrated template, and creates the template if it does not exist. The name depends on the migrations, so
 * other migrations get another template.
 */
async function ensureTemplate(client: pg.Client, server: string): Promise<string> {
  const migrations = await readMigrations();
  // The name contains a hash of all migrations and not their list, because a name has at most 63 bytes.
  const content = createHash('sha256')
    .update(migrations.map(({ name, checksum }) => `${name} ${checksum}`).join())
    .digest('hex');
  const name = `runyard_template_${content.slice(0, 32)}`;
  await client.query('SELECT pg_advisory_lock(7236430154412311)');
  const { rowCount } = await client.query('SELECT FROM pg_database WHERE datname = $1', [name]);
  if (rowCount === 0) {
    const fresh = `${name.slice(0, 50)}_${randomBytes(4).toString('hex')}`;
    await client.query(`CREATE DATABASE ${fresh} TEMPLATE template0 ENCODING 'UTF8'`);
    const db = await openDatabase({
      address: { connectionString: urlOf(server, fresh) },
      maxConnections: 1,
      log: silentLog,
    });
    try {
      await migrateDatabase(db);
    } catch (error) {
      await db.close();
      await client.query(`DROP DATABASE ${fresh} WITH (FORCE)`);
      throw error;
    }
    await db.close();
    await client.query(`ALTER DATABASE ${fresh} RENAME TO ${name}`);
  }
  await client.query('SELECT pg_advisory_unlock(7236430154412311)');
  return name;
}

async function dropDatabase(server: string, name: string): Promise<void> {
  await administer(server, (client) => client.query(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`));
}

async function administer<T>(server: string, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString: server });
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}

function urlOf(server: string, database: string): string {
  const url = new URL(server);
  url.pathname = `/${database}`;
  return url.href;
}
