/**
 * Lends the open connections of a database to one test after the other. New connections would be slow: each reads the catalog of every
 * table that it uses and plans every statement, which takes most of the database's processor time in a test.
 */
import { setTimeout as delay } from 'node:timers/promises';
import type { Database } from '../src/platform/store/database/database.ts';
import type { Statement } from '../src/platform/store/database/statement.ts';

/**
 * Returns a database for one test, which uses the connections of `kept`. Its `close` waits for the work of the test and refuses later
 * work, but keeps the connections open. `close` also ends the subscriptions of the test.
 */
export function lend(kept: Database): Database {
  let isClosed = false;
  const working = new Set<Promise<unknown>>();
  const stops = new Set<() => void>();
  const lent = <T>(work: () => Promise<T>): Promise<T> => {
    // Reject with the same error as a closed pool.
    if (isClosed) return Promise.reject(new Error('Cannot use a pool after calling end on the pool'));
    const done = work();
    working.add(done);
    const forget = () => working.delete(done);
    done.then(forget, forget);
    return done;
  };
  return {
    pool: kept.pool,
    shares: kept.shares,
    query: <Row extends object>(statement: Statement | string, values?: readonly unknown[]) =>
      lent(() => kept.query<Row>(statement, values)),
    onOwnConnection: (work) => lent(() => kept.onOwnConnection(work)),
    transaction: (work) => lent(() => kept.transaction(work)),
    listen: async (channel, onNotify, onReconnect) => {
      let isListening = false;
      // Notices from before this test may arrive until the answer to LISTEN.
      const stop = await lent(() =>
        kept.listen(channel, (payload) => void (isListening && onNotify(payload)), onReconnect),
      );
      isListening = true;
      stops.add(stop);
      return stop;
    },
    setAlone: kept.setAlone,
    close: async () => {
      isClosed = true;
      for (const stop of stops) stop();
      kept.setAlone(false);
      await Promise.allSettled(working);
    },
  };
}

/**
 * How many connections of a database stay open between tests. The number is small because each test process keeps several databases,
 * and all test processes share the connections of one server.
 */
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
