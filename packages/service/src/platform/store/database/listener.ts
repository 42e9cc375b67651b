/**
 * Listens to all channels on one separate connection. PostgreSQL does not store notices for a client that is disconnected. So after a
 * reconnect, the listener calls `onReconnect` of each subscription, and the subscriber reads the tables. The same connection sends the
 * notices of this process to the other processes, so the listener recognizes these notices when they come back.
 */

import { setTimeout as delay } from 'node:timers/promises';
import { backoffMs } from '@runyard/system/backoff';
import pg from 'pg';
import { clientConfig, type DatabaseConfig, prepareSession } from './connections.ts';
import { makeNoticeSender, type NoticeSet, partsOf } from './notices.ts';

export interface Listener {
  /** Resolves when notices of the channel can arrive, with a function that stops listening. */
  listen(channel: string, onNotify: (payload: string) => void, onReconnect?: () => void): Promise<() => void>;
  /** Passes notices to the subscriptions of this process at once, and sends them to the other processes. */
  tell(notices: NoticeSet): void;
  /** See `Database.setAlone`. */
  setAlone(isAlone: boolean): void;
  /** Sends the notices that are not sent yet, and closes the connection. */
  close(): Promise<void>;
}

interface Subscription {
  readonly channel: string;
  readonly onNotify: (payload: string) => void;
  readonly onReconnect: (() => void) | undefined;
}

/** A TCP connection can be dead without an error, so the listener checks its connection with a query every 30 seconds. */
const checkEveryMs = 30_000;
const checkTimeoutMs = 10_000;
const maxBackoffMs = 5_000;
/** Maximum time for which `close` waits until the last notices are sent. */
const flushMs = 1_000;

export function makeListener(config: DatabaseConfig): Listener {
  const subscriptions = new Set<Subscription>();
  let connection: Promise<pg.Client> | undefined;
  let closed = false;
  let isAlone = false;
  const closing = new AbortController();

  const call = (callback: () => void) => {
    try {
      callback();
    } catch (error) {
      config.log.error({ error: String(error) }, 'a listener of the database failed');
    }
  };

  const pass = (channel: string, payload: string) => {
    for (const subscription of subscriptions)
      if (subscription.channel === channel) call(() => subscription.onNotify(payload));
  };

  const connect = async (): Promise<pg.Client> => {
    const client = new pg.Client({ ...clientConfig(config), query_timeout: checkTimeoutMs });
    client.on('error', (error) => config.log.debug({ error: error.message }, 'the listening connection was lost'));
    client.on('notification', ({ channel, payload = '', processId }) => {
      // This process handles its own notices when it sends them.
      if (processId !== processIdOf(client)) pass(channel, payload);
    });
    try {
      await client.connect();
      await prepareSession(client, config);
      for (const channel of new Set([...subscriptions].map((subscription) => subscription.channel))) {
        await client.query(`LISTEN ${pg.escapeIdentifier(channel)}`);
      }
    } catch (error) {
      destroy(client);
      throw error;
    }
    const check = setInterval(() => {
      client.query('SELECT 1').catch(() => destroy(client));
    }, checkEveryMs);
    check.unref();
    client.once('end', () => {
      clearInterval(check);
      if (!closed) connection = reconnect();
    });
    return client;
  };

  const reconnect = async (): Promise<pg.Client> => {
    config.log.warn({}, 'the listening database connection was lost; connecting again');
    for (let tries = 0; ; tries += 1) {
      if (closed) throw new Error('the database is closed');
      try {
        const client = await connect();
        for (const subscription of subscriptions) {
          if (subscription.onReconnect !== undefined) call(subscription.onReconnect);
        }
        return client;
      } catch (error) {
        config.log.debug({ error: String(error) }, 'the database does not answer');
        const pauseMs = backoffMs({ firstMs: 50, longestMs: maxBackoffMs }, tries + 1);
        // `close` waits for this loop, so `close` must abort the pause. The timer does not keep the process alive. So without the
        // abort, the process would end while `close` still waits.
        await delay(pauseMs, undefined, { ref: false, signal: closing.signal }).catch(() => undefined);
      }
    }
  };

  // LISTEN statements run one after the other, because a client executes one statement at a time.
  let turn: Promise<unknown> = Promise.resolve();
  const inTurn = <T>(work: () => Promise<T>): Promise<T> => {
    const done = turn.then(work);
    turn = done.catch(() => undefined);
    return done;
  };

  // If a batch fails, it is not sent again, because the other processes look for lost notices every second.
  const sender = makeNoticeSender(async (channels, payloads) => {
    try {
      if (closed) return;
      connection ??= connect();
      await (await connection).query(sendNotices, [channels, payloads]);
    } catch (error) {
      if (subscriptions.size === 0) connection = undefined;
      config.log.debug({ error: String(error) }, 'notices for other processes were lost');
    }
  });

  return {
    tell: (notices) => {
      for (const { channel, payload } of [...notices].map(partsOf)) pass(channel, payload);
      if (!isAlone) sender.send(notices);
    },
    setAlone: (value) => {
      isAlone = value;
    },
    listen: (channel, onNotify, onReconnect) =>
      inTurn(async () => {
        if (closed) throw new Error('the database is closed');
        const subscription = { channel, onNotify, onReconnect };
        subscriptions.add(subscription);
        try {
          connection ??= connect();
          // `connect` may already have sent LISTEN for this channel. A second LISTEN has no effect.
          await (await connection).query(`LISTEN ${pg.escapeIdentifier(channel)}`);
        } catch (error) {
          subscriptions.delete(subscription);
          if (subscriptions.size === 0) connection = undefined;
          throw error;
        }
        return () => void subscriptions.delete(subscription);
      }),
    close: async () => {
      await Promise.race([sender.flush(), delay(flushMs, undefined, { ref: false })]);
      closed = true;
      closing.abort();
      const client = await connection?.catch(() => undefined);
      await client?.end().catch(() => undefined);
    },
  };
}

const sendNotices =
  'SELECT count(pg_notify(channel, payload)) FROM unnest($1::text[], $2::text[]) AS n(channel, payload)';

/** Returns the id of the server process of a connection. */
const processIdOf = (client: pg.Client): number | null => (client as unknown as { processID: number | null }).processID;

/** Closes the connection at once. `end()` would wait for an answer of the server, which does not arrive if the connection is dead. */
function destroy(client: pg.Client): void {
  const { connection } = client as unknown as { connection?: { stream: { destroy(): void } } };
  connection?.stream.destroy();
}
