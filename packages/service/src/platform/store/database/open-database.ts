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
import type { Database, Queryable } from './database.ts';
import { makeListener } from './listener.ts';
import type { NoticeSet } from './notices.ts';
import { run } from './send.ts';
import { findServerProblem } from './server-problem.ts';
import { makeShares } from './shares.ts';
import type { Statement } from './statement.ts';
import { inTransaction } from './transaction.ts';
import { asUnavailable } from './unavailable.ts';

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
