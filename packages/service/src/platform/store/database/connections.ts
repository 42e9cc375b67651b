/** Connects to PostgreSQL. The connections of the pool and of the listener have the same settings. */
import { setTimeout as delay } from 'node:timers/promises';
import { backoffMs } from '@runyard/system/backoff';
import pg from 'pg';
import type { StoreLog } from './log.ts';

/** The address of a server: a URL (`RUNYARD_DATABASE_URL`), or the folder of its Unix socket. */
export type DatabaseAddress =
  | { readonly connectionString: string }
  | { readonly host: string; readonly port: number; readonly user: string; readonly database: string };

export interface DatabaseConfig {
  readonly address: DatabaseAddress;
  readonly maxConnections: number;
  readonly log: StoreLog;
  /** Milliseconds after which the server cancels a statement. Default: 30,000. */
  readonly statementTimeoutMs?: number;
  /** Milliseconds to wait for a server that is unreachable or starting, counted from the first failed attempt. Default: 5,000. */
  readonly connectPatienceMs?: number;
}

const defaultStatementTimeoutMs = 30_000;

const tooManyClients = '53300';
/** Milliseconds to wait for a server that accepts no more connections. */
const crowdedMs = 5_000;

/** Errors that occur before a connection is open. No statement was sent, so connecting again is safe. `57P03`: the server is starting. */
const temporary = new Set(['ECONNREFUSED', 'ENOENT', 'ECONNRESET', '57P03', tooManyClients, '57P01', '57P02']);

export function clientConfig(config: DatabaseConfig): pg.ClientConfig {
  return {
    ...config.address,
    application_name: 'runyard',
    connectionTimeoutMillis: 10_000,
    keepAlive: true,
    keepAliveInitialDelayMillis: 10_000,
    types: valueTypes,
  };
}

/**
 * Makes the settings of a session: the time formats that `valueTypes` needs, and time limits. Sends them as a statement and not as
 * startup options, because connection poolers refuse such options.
 */
export async function prepareSession(client: pg.ClientBase, config: DatabaseConfig, more = ''): Promise<void> {
  const timeout = Math.trunc(config.statementTimeoutMs ?? defaultStatementTimeoutMs);
  await client.query(
    `SET TimeZone = 'UTC'; SET DateStyle = 'ISO'; SET statement_timeout = ${timeout}; SET idle_in_transaction_session_timeout = 60000; ${more}`,
  );
}

/**
 * Makes PostgreSQL use one plan of a statement for all values. By default it plans a statement again at each of its first five uses on
 * a connection, and some statements at every use. When many runs begin at once, most connections are new, and planning took more time
 * than the statements. Our statements find rows by keys, so one plan fits all values (`plans.test.ts`). PostgreSQL uses a plan until
 * the statistics of the table change, and a table may grow from 30 to thousands of rows within a minute. With the default
 * `random_page_cost`, a plan for 30 rows reads the whole table. The lower value makes even this plan use an index.
 */
const keepPlans = 'SET plan_cache_mode = force_generic_plan; SET random_page_cost = 1.1; SET jit = off';

export function makePool(config: DatabaseConfig): pg.Pool {
  const pool = new pg.Pool({
    ...clientConfig(config),
    // Send the statements of a connection without waiting for the answers to the previous ones.
    pipeline: true,
    max: config.maxConnections,
    idleTimeoutMillis: 30_000,
    // End the wait if the network drops the answers of the server. In all other cases the server's `statement_timeout` ends the statement first.
    query_timeout: (config.statementTimeoutMs ?? defaultStatementTimeoutMs) + 5_000,
    onConnect: async (client) => {
      // An `error` event without a handler would end the process, for example if the connection is lost between two statements of a transaction.
      client.on('error', (error) => config.log.debug({ error: error.message }, 'a database connection was lost'));
      await prepareSession(client, config, keepPlans);
    },
  });
  pool.on('error', (error) => config.log.warn({ error: error.message }, 'an idle database connection was lost'));
  return pool;
}

/** Opens a separate connection for `work` and closes it afterwards. Its statements have no time limits. */
export async function ownConnection<T>(config: DatabaseConfig, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client(clientConfig(config));
  client.on('error', (error) => config.log.debug({ error: error.message }, 'a database connection was lost'));
  await client.connect();
  try {
    await prepareSession(client, { ...config, statementTimeoutMs: 0 });
    await client.query('SET idle_in_transaction_session_timeout = 0');
    return await work(client);
  } finally {
    await client.end().catch(() => undefined);
  }
}

/**
 * Returns a function that takes a connection from the pool. The function waits for a server that is starting or unreachable, but at
 * most until `connectPatienceMs` after the first failure. So if the outage is longer, later requests fail at once. The function throws the
 * last error.
 */
export function acquireFrom(pool: pg.Pool, config: DatabaseConfig): () => Promise<pg.PoolClient> {
  const patienceMs = config.connectPatienceMs ?? 5_000;
  let awaySince: number | undefined;
  return async () => {
    const startedAt = Date.now();
    for (let tries = 0; ; tries += 1) {
      try {
        const client = await pool.connect();
        awaySince = undefined;
        return client;
      } catch (error) {
        if (!isTemporary(error)) throw error;
        awaySince ??= Date.now();
        const isCrowded = sqlState(error) === tooManyClients;
        if (Date.now() - (isCrowded ? startedAt : awaySince) > (isCrowded ? crowdedMs : patienceMs)) throw error;
        await delay(backoffMs({ firstMs: 20, longestMs: 250 }, tries + 1));
      }
    }
  };
}

function isTemporary(error: unknown): boolean {
  return temporary.has(sqlState(error) ?? '');
}

/** Returns the error code of PostgreSQL, which has five characters (`23505`), or the code of a socket error (`ECONNREFUSED`). */
export function sqlState(error: unknown): string | undefined {
  if (!(error instanceof Error) || !('code' in error)) return undefined;
  return typeof error.code === 'string' ? error.code : undefined;
}

/** Returns true if the connection's state is unknown after this error. Such a connection is closed and not used again. */
export function spoilsConnection(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  // "cached plan must not change result type": another process has migrated the tables, and the prepared statements of this connection
  // fit the old tables.
  return (
    error.message === 'Query read timeout' || (sqlState(error) === '0A000' && error.message.includes('cached plan'))
  );
}

const int8 = 20;
const timestamptz = 1184;

/**
 * Parses the values of the database in the same way on every connection. Used as `types` of a `pg` client or pool:
 *
 * - `bigint` (and `count(*)`): a number. A value above 2^53 - 1 makes the query fail, because a number cannot hold it exactly.
 * - `timestamptz`: RFC 3339 text in UTC with microseconds, `2026-11-21T10:44:01.123456Z`. Answers, cursors and parameters use this
 * text unchanged. A JavaScript `Date` has only milliseconds, so a cursor made from it would skip rows (activepieces #14323).
 * `infinity` and `-infinity` are not changed.
 * - `numeric`: text, because a number would not be exact. `jsonb`: parsed JSON. `bytea`: a Buffer. `uuid`: text.
 *
 * Pass a parameter of type `jsonb` as `JSON.stringify(…)`, because `pg` would send a JavaScript array as a PostgreSQL array.
 */
const valueTypes: pg.CustomTypesConfig = {
  getTypeParser: ((oid: number, format?: 'text' | 'binary') => {
    if (format !== 'binary') {
      if (oid === int8) return parseInt8;
      if (oid === timestamptz) return parseTimestamp;
    }
    return pg.types.getTypeParser(oid, format);
  }) as typeof pg.types.getTypeParser,
};

function parseInt8(text: string): number {
  const value = Number(text);
  if (!Number.isSafeInteger(value))
    throw new RangeError(`bigint ${text} is too large to be stored exactly as a number`);
  return value;
}

/** Converts `2026-11-21 10:44:01.12+00` (DateStyle ISO, time zone UTC, without trailing zeros) to RFC 3339 with six digits. */
function parseTimestamp(text: string): string {
  const match = /^(\d{4,}-\d\d-\d\d) (\d\d:\d\d:\d\d)(?:\.(\d+))?\+00$/.exec(text);
  if (match === null) {
    if (text === 'infinity' || text === '-infinity') return text;
    throw new RangeError(`time ${text} is not a UTC time after Christ`);
  }
  return `${match[1]}T${match[2]}.${(match[3] ?? '').padEnd(6, '0')}Z`;
}
