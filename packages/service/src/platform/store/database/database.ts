import { setTimeout as delay } from 'node:timers/promises';
import { backoffMs } from '@runyard/system/backoff';
import type pg from 'pg';
import {
  acquireFrom,
  type DatabaseConfig,
  makePool,
  ownConnection,
  spoilsConnection,
  sqlState,
} from './connections.ts';
import { makeListener } from './listener.ts';
import { run } from './send.ts';
import { boolean, defineStatement, integer, type TypedStatement, text } from './statement.ts';
import { inTransaction, type Transaction } from './transaction.ts';
import { asUnavailable } from './unavailable.ts';

/**
 * A statement with a name: the server parses and plans it once for each connection. A name has at most 63 characters.
 */
export interface Statement {
  readonly name: string;
  readonly text: string;
}

export interface Queryable {
  /** Rows of a statement that declares their columns. */
  query<Row extends object>(statement: TypedStatement<Row>, values?: readonly unknown[]): Promise<Row[]>;
  /**
   * Returns the rows of one statement. `valueTypes` in `connections.ts` explains how values arrive. A plain string is sent without a name.
   * Statements get one plan for all values; for statements whose plan depends on their values, use `planned-by-values.ts`. Throws
   * `StoreUnavailable` if the connection is lost or the server's disk is full.
   */
  query<Row extends object = Record<string, unknown>>(
    statement: Statement | string,
    values?: readonly unknown[],
  ): Promise<Row[]>;
  /** Calls `work` after the transaction has committed, and not if it is rolled back. Absent: each statement commits by itself. */
  afterCommit?(work: () => void): void;
}

/** Calls `work` when the writes are committed. Without a transaction, calls it at once. Used for measurements. */
export function afterCommit(db: Queryable, work: () => void): void {
  if (db.afterCommit) db.afterCommit(work);
  else work();
}

export interface Database extends Queryable {
  readonly pool: pg.Pool;
  /** Opens a connection outside of the pool, without time limits, for work that may take long: COPY, migrations. */
  onOwnConnection<T>(work: (client: pg.Client) => Promise<T>): Promise<T>;
  /**
   * Runs `work` in one transaction (READ COMMITTED) and commits. `work` may run several times: after serialization failures and deadlocks
   * it is repeated, up to 5 times. If `work` throws, the transaction is rolled back and the error is thrown.
   */
  transaction<T>(work: (tx: Transaction) => Promise<T>): Promise<T>;
  /**
   * Calls `onNotify` for each NOTIFY on the channel. Calls `onReconnect` after an outage, because notices may be lost during the outage.
   * Resolves when it
   * listens. Returns the function that stops it.
   */
  listen(channel: string, onNotify: (payload: string) => void, onReconnect?: () => void): Promise<() => void>;
  /** Waits for the statements in progress. */
  close(): Promise<void>;
}

const maxTries = 5;
/** Version of PostgreSQL, as `server_version_num`. */
export const minServerVersion = 140_000;

/** Connects and checks the server. Does not migrate. */
export async function openDatabase(config: DatabaseConfig): Promise<Database> {
  const pool = makePool(config);
  const acquire = acquireFrom(pool, config);
  const listener = makeListener(config);
  const withClient = async <T>(work: (client: pg.PoolClient) => Promise<T>): Promise<T> => {
    const client = await acquire().catch((error: unknown) => {
      throw asUnavailable(error, 'database');
    });
    let spoilt = false;
    try {
      return await work(client);
    } catch (error) {
      spoilt = spoilsConnection(error);
      throw error;
    } finally {
      client.release(spoilt);
    }
  };
  const database: Database = {
    pool,
    query: <Row extends object>(statement: Statement | string, values?: readonly unknown[]) =>
      retrying(() => withClient((client) => run<Row>(client, statement, values))),
    onOwnConnection: (work) => ownConnection(config, work),
    transaction: (work) => retrying(() => withClient((client) => inTransaction(client, work))),
    listen: (channel, onNotify, onReconnect) => listener.listen(channel, onNotify, onReconnect),
    close: async () => {
      await listener.close();
      await pool.end();
    },
  };
  try {
    await checkServer(database);
  } catch (error) {
    await database.close();
    throw error;
  }
  return database;
}

/** 40001 serialization_failure, 40P01 deadlock_detected: everything was rolled back, so trying again is right. */
async function retrying<T>(attempt: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await attempt();
    } catch (error) {
      const again =
        ['40001', '40P01'].includes(sqlState(error) ?? '') || (sqlState(error) === '0A000' && spoilsConnection(error));
      if (!again || tries === maxTries) throw error;
      await delay(backoffMs({ firstMs: 10, longestMs: 200 }, tries));
    }
  }
}

const describeServer = defineStatement({
  name: 'describe_server',
  text: `SELECT current_setting('server_version_num')::int AS version, current_setting('server_encoding') AS encoding, pg_is_in_recovery() AS standby`,
  row: { version: integer, encoding: text(), standby: boolean },
});

/** Throws if the service cannot work with the server: an old version, another encoding, or a server that refuses writes. */
async function checkServer(db: Queryable): Promise<void> {
  const [server] = await db.query(describeServer);
  if (server === undefined || server.version < minServerVersion) {
    throw new Error(`PostgreSQL ${Math.trunc((server?.version ?? 0) / 10_000)} is too old: Runyard needs 14 or newer`);
  }
  if (server.encoding !== 'UTF8')
    throw new Error(`The database's encoding is ${server.encoding}: create it with ENCODING 'UTF8'`);
  if (server.standby) throw new Error('RUNYARD_DATABASE_URL names a standby server, which cannot be written to');
}
