/** Counts what programs send to an embedded PostgreSQL and what it writes: statements, commits, bytes of its log. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { silentLog } from '../../packages/service/src/platform/store/database/log.ts';
import { startEmbeddedPostgres } from '../../packages/service/src/platform/store/embedded/start.ts';

/** Sums since the start of the server, or differences of such sums. */
export interface Counts {
  readonly commits: number;
  readonly logBytes: number;
  /** Number of executions of each statement, by its name or text. BEGIN, COMMIT and ROLLBACK are left out. */
  readonly statements: ReadonlyMap<string, number>;
}

export interface CountingServer {
  readonly url: string;
  /** Sends a statement that is not counted. */
  query<Row extends object>(text: string, values?: readonly unknown[]): Promise<Row[]>;
  /**
   * Counts during `work`, and then until the background work that it caused is done. Subtracts the counts of an idle system over the same
   * time, which were measured before.
   */
  count(work: () => Promise<void>): Promise<Counts>;
  stop(): Promise<void>;
}

/** Settings that make the counts of two equal runs equal. `pg_stat_statements` can only be loaded at the start of the server. */
const settings = `
  ALTER SYSTEM SET shared_preload_libraries = 'pg_stat_statements';
  ALTER SYSTEM SET full_page_writes = off;
  ALTER SYSTEM SET autovacuum = off`;

/**
 * Duration of the measurement of idle programs, and of the wait for background work after a test, in milliseconds. It is longer than 10 s,
 * because a connection of PostgreSQL may report its counts only after 10 s without statements.
 */
const idleMs = 11_500;

/** Starts a server. The database `postgres` has no tables yet. */
export async function startCountingServer(): Promise<CountingServer> {
  const dataDir = await mkdtemp(path.join(tmpdir(), 'runyard-counts-'));
  const start = () => startEmbeddedPostgres({ dataDir, log: silentLog });
  const first = await start();
  const setup = new pg.Client({ connectionString: first.url });
  await setup.connect();
  for (const statement of settings.split(';')) await setup.query(statement);
  await setup.end();
  await first.stop();
  const server = await start();
  // Use another database, so that the statements and commits of this connection are not counted.
  const outside = await connect(server.url, 'template1');
  await outside.query('CREATE EXTENSION pg_stat_statements');
  const inside = await connect(server.url);
  const { rows } = await inside.query('SELECT current_database() AS name');
  const database = rows[0].name;
  /** Commits of the connection `inside`. */
  let own = 1;

  const read = async (): Promise<Counts & { readonly at: number }> => {
    await outside.query('SELECT pg_stat_clear_snapshot()');
    const { rows: totals } = await outside.query(
      `SELECT (SELECT xact_commit::float8 FROM pg_stat_database WHERE datname = $1) AS commits, pg_current_wal_lsn() - '0/0' AS bytes`,
      [database],
    );
    const { rows: statements } = await outside.query<{ text: string; calls: number }>(
      `SELECT query AS text, sum(calls)::float8 AS calls FROM pg_stat_statements s JOIN pg_database d ON d.oid = s.dbid
       WHERE d.datname = $1 AND toplevel AND query !~ '^(BEGIN|COMMIT|ROLLBACK)' GROUP BY query`,
      [database],
    );
    return {
      at: performance.now(),
      commits: totals[0].commits - own,
      logBytes: Number(totals[0].bytes),
      statements: new Map(statements.map(({ text, calls }) => [text.replace(/\s+/g, ' ').trim(), calls])),
    };
  };
  const difference = (
    after: Awaited<ReturnType<typeof read>>,
    before: Awaited<ReturnType<typeof read>>,
  ): Awaited<ReturnType<typeof read>> => ({
    at: after.at - before.at,
    commits: after.commits - before.commits,
    logBytes: after.logBytes - before.logBytes,
    statements: new Map([...after.statements].map(([text, n]) => [text, n - (before.statements.get(text) ?? 0)])),
  });

  return {
    url: server.url,
    query: async (text, values = []) => {
      own += 1;
      return (await inside.query(text, [...values])).rows;
    },
    count: async (work) => {
      await delay(idleMs);
      const start = await read();
      await delay(idleMs);
      const begun = await read();
      const idle = difference(begun, start);
      await work();
      await delay(idleMs);
      const all = difference(await read(), begun);
      const times = all.at / idle.at;
      return {
        commits: all.commits - idle.commits * times,
        logBytes: all.logBytes - idle.logBytes * times,
        statements: new Map(
          [...all.statements].map(([text, n]) => [text, n - (idle.statements.get(text) ?? 0) * times]),
        ),
      };
    },
    stop: async () => {
      await outside.end();
      await inside.end();
      await server.stop();
      await rm(dataDir, { recursive: true, force: true });
    },
  };
}

/** Connects without being counted in `pg_stat_statements`. */
async function connect(url: string, database?: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url, ...(database === undefined ? {} : { database }) });
  await client.connect();
  await client.query("SET pg_stat_statements.track = 'none'").catch(() => undefined);
  return client;
}
