/** Connects to PostgreSQL in the same way for the pool and for the listener. */
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
  /** Time after which the server cancels a statement. Default: 30,000. */
  readonly statementTimeoutMs?: number;
  /** How long to wait for a server that is away or starting, from the first failure on. Default: 5,000. */
  readonly connectPatienceMs?: number;
}

const defaultStatementTimeoutMs = 30_000;

const tooManyClients = '53300';
/** How long to wait for a server that has no connection left. */
const crowdedMs = 5_000;

/** Errors before a connection was open. No statement was sent, so the attempt can be repeated safely. `57P03`: starting up. */
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

/** Session settings that `valueTypes` needs. The settings are not startup options, because connection poolers refuse those. */
export async function prepareSession(client: pg.ClientBase, config: DatabaseConfig, more = ''): Promise<void> {
  const timeout = Math.trunc(config.statementTimeoutMs ?? defaultStatementTimeoutMs);
  await client.query(
    `SET TimeZone = 'UTC'; SET DateStyle = 'ISO'; SET statement_timeout = ${timeout}; SET idle_in_transaction_session_timeout = 60000; ${more}`,
  );
}

/**
 * Uses one plan for all values. PostgreSQL plans a statement again at each of its first five uses on a connection, and some statements at
 * every use. When many runs begin at once, most connections are new, and planning took more time than the statements. Our statements
 * find rows by keys, so one plan fits all values (`plans.test.ts`). A plan is kept until the statistics change. With the default cost of a
 * page, a plan that was made while a table had 30 rows reads the whole table, and still does so a minute later, when the table has
 * thousands of rows.
 */
const keepPlans = 'SET plan_cache_mode = force_generic_plan; SET random_page_cost = 1.1; SET jit = off';

export function makePool(config: DatabaseConfig): pg.Pool {
  const pool = new pg.Pool({
    ...clientConfig(config),
    // Without this option, each of several statements that are sent together waits for the previous answer.
    pipeline: true,
    max: config.maxConnections,
    idleTimeoutMillis: 30_000,
    // Needed for a network that drops packets; normally the server's own timeout comes first.
    query_timeout: (config.statementTimeoutMs ?? defaultStatementTimeoutMs) + 5_000,
    onConnect: async (client) => {
      // Without a listener, losing the connection between two statements of a transaction would end the process.
      client.on('error', (error) => config.log.debug({ error: error.message }, 'a database connection was lost'));
      await prepareSession(client, config, keepPlans);
    },
  });
  pool.on('error', (error) => config.log.warn({ error: error.message }, 'an idle database connection was lost'));
  return pool;
}

/** Opens a connection for `work` alone, without time limits. */
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
 * Returns the function that takes a connection of the pool. The function waits for a server that is starting. While the server is
 * unreachable, only the first callers wait: `connectPatienceMs` counts from the first failure, so that requests during an outage are
 * answered at once. The function throws the last error.
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

/** Returns the five characters of PostgreSQL (`23505`), or the code of a socket error (`ECONNREFUSED`). */
export function sqlState(error: unknown): string | undefined {
  if (!(error instanceof Error) || !('code' in error)) return undefined;
  return typeof error.code === 'string' ? error.code : undefined;
}

/** Returns true if the connection's state is unknown after this error. Such a connection is closed and not used again. */
export function spoilsConnection(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  // "cached plan must not change result type": another process migrated, and the prepared statements are for the old tables.
  return (
    error.message === 'Query read timeout' || (sqlState(error) === '0A000' && error.message.includes('cached plan'))
  );
}

const int8 = 20;
const timestamptz = 1184;

/**
 * Parses the values of the database in the same way on every connection. Used as `types` of a `pg` client or pool:
 *
 * - `bigint` (and `count(*)`): a number. A value beyond 2^53 makes the query fail, instead of arriving as a nearby number.
 * - `timestamptz`: RFC 3339 text in UTC with all six digits of a second, `2026-11-21T10:44:01.123456Z`. Answers, cursors and parameters use
 * it unchanged. A JavaScript `Date` has milliseconds only: as a cursor it skips rows (activepieces #14323). `infinity` and `-infinity` stay
 * as they are.
 * - `numeric`: text, exact. `jsonb`: parsed. `bytea`: Buffer. `uuid`: text.
 *
 * Parameters: give `jsonb` as `JSON.stringify(…)`, because a JavaScript array would be sent as a PostgreSQL array.
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
  if (!Number.isSafeInteger(value)) throw new RangeError(`bigint ${text} is beyond what a number holds exactly`);
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
