/**
 * Lends the open connections of a database to one test after the other. A new connection reads the catalog of each table and plans each
 * statement, which takes most of the database's processor time in a test.
 */
import { setTimeout as delay } from 'node:timers/promises';
import type { Database, Statement } from '../src/platform/store/database/database.ts';
import type { Listener } from '../src/platform/store/database/listener.ts';

/**
 * Returns `kept` for one test. `close` waits for the work of the test and refuses later work, but keeps the connections. It closes
 * `listener`, which must be new: the connection of an earlier test would deliver notices from before this test began to listen.
 */
export function lend(kept: Database, listener: Listener): Database {
  let isClosed = false;
  const working = new Set<Promise<unknown>>();
  const lent = <T>(work: () => Promise<T>): Promise<T> => {
    // The error is the same as for a closed pool.
    if (isClosed) return Promise.reject(new Error('Cannot use a pool after calling end on the pool'));
    const done = work();
    working.add(done);
    const forget = () => working.delete(done);
    done.then(forget, forget);
    return done;
  };
  return {
    pool: kept.pool,
    query: <Row extends object>(statement: Statement | string, values?: readonly unknown[]) =>
      lent(() => kept.query<Row>(statement, values)),
    onOwnConnection: (work) => lent(() => kept.onOwnConnection(work)),
    transaction: (work) => lent(() => kept.transaction(work)),
    listen: listener.listen,
    close: async () => {
      isClosed = true;
      await listener.close();
      await Promise.allSettled(working);
    },
  };
}

/** Connections that stay open. Each test process keeps some databases, and the server accepts 100 connections of all processes together. */
const keptConnections = 4;

/** Closes the connections above `keptConnections`. Returns false if a test still holds a connection after a second. */
export async function trimConnections({ pool }: Database): Promise<boolean> {
  const deadline = performance.now() + 1000;
  while (pool.idleCount < pool.totalCount) {
    if (performance.now() > deadline) return false;
    await delay(10);
  }
  while (pool.totalCount > keptConnections) (await pool.connect()).release(true);
  return true;
}
