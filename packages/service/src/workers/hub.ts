/** The worker connections of this process: what they hold, what they say, what they are told. */
import { randomUUIDv7 } from 'node:crypto';
import type { ServiceMessage, WorkerMessage } from '@runyard/contract/worker-protocol';
import type { Engine } from '../executions/engine.ts';
import type { Assignment } from '../executions/queue/assign.ts';
import { sqlState } from '../store/database/connections.ts';
import { type Connection, makeConnection } from './connection.ts';
import { insertWorkerConnection, renewLeases } from './connections.ts';
import { makeDispatcher } from './dispatcher.ts';
import { takeOnPublicWorker } from './greet.ts';
import { loseConnection } from './lost-connections.ts';
import { handleWorkerMessage } from './messages.ts';
import { makeOrders } from './orders.ts';
import { ConnectionEnded } from './rights.ts';

/** After a rejection nothing is sent on the connection for so long, so that another worker gets it. */
const rejectionPauseMs = 2000;

/** A worker that said no hello for so long is taken for a public one. */
const helloWaitMs = 1000;

/** SQLSTATE class 22: PostgreSQL cannot store a value of the message. */
const isDataError = (error: unknown): boolean => sqlState(error)?.startsWith('22') ?? false;

export interface Hub {
  /** A worker connected; returns what its socket's events are given to. */
  connect(input: {
    workerId: string;
    /** null: the hosted pool of all teams. */
    teamId: string | null;
    /** The key that opened the connection: each action is checked against it. */
    keyId: string;
    send(message: ServiceMessage): void;
    /** Ends the connection, so that the worker makes a new one. */
    end(): void;
  }): Promise<HubConnection>;
  /** Assigns waiting work until slots or work run out. */
  dispatch(): Promise<void>;
  /** Tells workers to end what was cancelled or timed out, and which of their sandboxes hold no slot. */
  sendStopOrders(): Promise<void>;
  close(): Promise<void>;
}

export interface HubConnection {
  message(message: WorkerMessage): Promise<void>;
  /** Any sign of life: a ping, a frame. */
  alive(): void;
  closed(): Promise<void>;
}

/** What a hub knows beyond the engine. */
export interface HubOptions {
  readonly serviceInstanceId: string;
  /** The arguments for the agent that follow from the run. */
  readonly agentArguments?: (assignment: Assignment) => string[];
}

/** Opens the hub; it dispatches on notices, and by a slow poll of its owner. */
export function openHub(engine: Engine, options: HubOptions): Hub {
  const connections = new Map<string, Connection>();
  let closing = false;
  const dispatcher = makeDispatcher(engine, connections, options.agentArguments ?? (() => []));
  const { dispatchSoon } = dispatcher;
  const orders = makeOrders(engine, connections, dispatchSoon);

  const holds = (runId: string): boolean => {
    for (const connection of connections.values())
      for (const held of connection.held.values()) if (held.runId === runId) return true;
    return false;
  };

  const unsubscribe = [
    engine.notices.onQueue(dispatchSoon),
    engine.notices.onAnyRun((runId) => {
      if (runId === null || holds(runId)) orders.sendSoon();
    }),
  ];

  async function lose(connection: Connection): Promise<void> {
    connections.delete(connection.id);
    await loseConnection(engine, connection.id);
    dispatchSoon();
  }

  return {
    dispatch: dispatcher.dispatch,
    sendStopOrders: orders.send,
    connect: async ({ workerId, teamId, keyId, send, end }) => {
      const connection = makeConnection({ id: randomUUIDv7(), workerId, teamId, send });
      const row = { id: connection.id, serviceInstanceId: options.serviceInstanceId, workerId, teamId, keyId };
      await insertWorkerConnection(engine.db, row);
      connections.set(connection.id, connection);

      let takingOn: Promise<void> | null = null;
      /** Takes the worker on as a public one, once. */
      const takeOn = () => {
        clearTimeout(greeting);
        takingOn ??= takeOnPublicWorker(engine, connection).then(dispatchSoon);
        return takingOn;
      };
      // Our worker says hello at once; the public one says nothing until it has work.
      const greeting = setTimeout(() => {
        takeOn().catch((error: unknown) => {
          engine.log.error({ err: error, worker: workerId }, 'a worker without a hello could not be taken on');
          end();
        });
      }, helloWaitMs);

      /** `row_lost`: the record had lost the row of this connection, so the worker has to connect again. */
      const handle = async (message: WorkerMessage): Promise<'row_kept' | 'row_lost'> => {
        try {
          await handleWorkerMessage(engine, connection, message);
          return 'row_kept';
        } catch (error) {
          const isHere = connections.has(connection.id) && message.type !== 'worker_hello';
          if (!(error instanceof ConnectionEnded) || !isHere) throw error;
          // The public worker does not say it again: this process is not dead, so the message counts.
          await insertWorkerConnection(engine.db, row);
          await handleWorkerMessage(engine, connection, message);
          return 'row_lost';
        }
      };
      const acknowledge = (message: WorkerMessage) => {
        if (message.type === 'worker_hello' || message.seq === undefined) return;
        send({ type: 'messages_applied', data: { seq: message.seq } });
      };
      return {
        message: async (message) => {
          clearTimeout(greeting);
          // After a lost connection, the public worker's first message may be about what it held before.
          if (message.type !== 'worker_hello' && !connection.ready) await takeOn();
          else await takingOn;
          // Before the work is back in the queue: the notice of it may be faster than the answer to the statement.
          if (message.type === 'task_rejected') connection.pausedUntil = performance.now() + rejectionPauseMs;
          const handled = await handle(message).catch((error: unknown) => {
            // It fails each time: the worker drops it, and on its next connection its list is compared with the record.
            if (isDataError(error)) acknowledge(message);
            throw error;
          });
          acknowledge(message);
          if (handled === 'row_lost') end();
          if (message.type === 'worker_hello') orders.sendSoon();
          dispatchSoon();
        },
        alive: () => {
          const now = performance.now();
          if (now - connection.lastRenewedAt < (engine.timing.leaseSeconds * 1000) / 6) return;
          connection.lastRenewedAt = now;
          renewLeases(engine.db, connection.id, engine.timing.leaseSeconds).then(
            (isKnown) => {
              if (isKnown || !connections.has(connection.id)) return;
              engine.log.warn(
                { worker: workerId },
                'this service process was taken for dead; the worker connects again',
              );
              end();
            },
            (error: unknown) => engine.log.warn({ err: error }, 'renewing leases failed'),
          );
        },
        closed: async () => {
          clearTimeout(greeting);
          if (!closing) await lose(connection);
        },
      };
    },
    close: async () => {
      closing = true;
      for (const stop of unsubscribe) stop();
      await dispatcher.stop();
      await orders.stop();
      for (const connection of [...connections.values()]) await lose(connection);
    },
  };
}
