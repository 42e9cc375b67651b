import { setTimeout as delay } from 'node:timers/promises';
import { backoffMs } from '@runyard/system/backoff';
import type pg from 'pg';
import {
  acquireFrom,
  clientConfig,
  type DatabaseConfig,
  makePool,
  ownConnection,
  spoilsConnection,
  sqlState,
} from './connections.ts';
import { makeListener } from './listener.ts';
import type { NoticeSet } from './notices.ts';
import { run } from './send.ts';
import { findServerProblem } from './server-problem.ts';
import { makeShares, type Shares } from './shares.ts';
import type { TypedStatement } from './statement.ts';
import { inTransaction, type Transaction } from './transaction.ts';
import { asUnavailable } from './unavailable.ts';

/**
 * A statement with a name of at most 63 characters. The server parses and plans it only once for each connection.
 */
export interface Statement {
  readonly name: string;
  readonly text: string;
}

export interface Queryable {
  /** Returns the rows of a statement that declares the columns of its result. */
  query<Row extends object>(statement: TypedStatement<Row>, values?: readonly unknown[]): Promise<Row[]>;
  /**
   * Returns the rows of one statement. `valueTypes` in `connections.ts` shows which JavaScript value each SQL type becomes. A plain
   * string is sent as a statement without a name. PostgreSQL uses one plan of a statement for all values; if the best plan depends on
   * the values, use `planned-by-values.ts`. Throws
   * `StoreUnavailable` if the connection is lost or the server's disk is full.
   */
  query<Row extends object = Record<string, unknown>>(
    statement: Statement | string,
    values?: readonly unknown[],
  ): Promise<Row[]>;
  /**
   * Calls `work` after the transaction has committed. Does not call it after a rollback. Absent: this is not a transaction, and each
   * statement commits by itself.
   */
  afterCommit?(work: () => void): void;
}

/**
 * Calls `work` when the writes before this call are committed: after the transaction, or at once if `db` is not a transaction. Used
 * for measurements.
 */
export function afterCommit(db: Queryable, work: () => void): void {
  if (db.afterCommit) db.afterCommit(work);
  else work();
}

export interface Database extends Queryable {
  readonly pool: pg.Pool;
  /** The shares of the teams in the pool. */
  readonly shares: Pick<Shares, 'waiting'>;
  /**
   * Opens a connection outside of the pool, whose statements have no time limits. Use it for work that may take long, such as COPY and
   * migrations.
   */
  onOwnConnection<T>(work: (client: pg.Client) => Promise<T>): Promise<T>;
  /**
   * Runs `work` in one transaction (READ COMMITTED) and commits. After a serialization failure or a deadlock, `work` is repeated, so
   * it may run up to 5 times. If `work` throws, the transaction is rolled back and the error is thrown.
   */
  transaction<T>(work: (tx: Transaction) => Promise<T>): Promise<T>;
  /**
   * Calls `onNotify` for each NOTIFY on the channel, and for each notice that this process sends after a commit (see `notices.ts`). Calls `onReconnect` after an outage, because notices may be lost during the outage.
   * Resolves when notices can arrive, with a function that stops listening.
   */
  listen(channel: string, onNotify: (payload: string) => void, onReconnect?: () => void): Promise<() => void>;
  /**
   * Says whether no other process uses the database. While `isAlone` is true, notices that are sent after commits reach only this process.
   * Before the first call, the process counts as not alone.
   */
  setAlone(isAlone: boolean): void;
  /** Waits for the statements in progress, and then closes all connections. */
  close(): Promise<void>;
}

const maxTries = 5;
/** Waits for a server that is starting, at most for the patience of `acquireFrom`. */
const waitForServer = (db: Queryable) => db.query('SELECT 1');

/** Connects and checks the server. Does not migrate. */
export async function openDatabase(config: DatabaseConfig): Promise<Database> {
  const pool = makePool(config);
  const acquire = acquireFrom(pool, config);
  const listener = makeListener(config);
  const shares = makeShares(config.maxConnections);
  const withClient = <T>(work: (client: pg.PoolClient) => Promise<T>): Promise<T> => shares.hold(() => onClient(work));
  const onClient = async <T>(work: (client: pg.PoolClient) => Promise<T>): Promise<T> => {
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
    shares,
    query: async <Row extends object>(statement: Statement | string, values?: readonly unknown[]) => {
      const notices: NoticeSet = new Set();
      const rows = await retrying(() => withClient((client) => run<Row>(client, statement, values, notices)));
      listener.tell(notices);
      return rows;
    },
    onOwnConnection: (work) => ownConnection(config, work),
    transaction: (work) => retrying(() => withClient((client) => inTransaction(client, work, listener.tell))),
    listen: (channel, onNotify, onReconnect) => listener.listen(channel, onNotify, onReconnect),
    setAlone: (isAlone) => listener.setAlone(isAlone),
    close: async () => {
      await listener.close();
      await pool.end();
    },
  };
  try {
    await waitForServer(database);
    // The embedded server needs no check, because the service sets it up itself.
    const problem = 'connectionString' in config.address ? await findServerProblem(clientConfig(config)) : null;
    if (problem !== null) throw new Error(`The server of RUNYARD_DATABASE_URL cannot be used: ${problem}`);
  } catch (error) {
    await database.close();
    throw error;
  }
  return database;
}

/**
 * Repeats an attempt after 40001 (serialization_failure), 40P01 (deadlock_detected) or a change of the tables. PostgreSQL has rolled
 * back all changes of such an attempt.
 */
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
