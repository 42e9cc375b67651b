/** The worker connections of this process: what they hold, what they say, what they are told. */
import { randomUUIDv7 } from 'node:crypto';
import type { ServiceMessage, WorkerMessage } from '@runyard/contract/worker-protocol';
import type { Engine } from '../executions/engine.ts';
import type { Assignment } from '../executions/queue/assign.ts';
import { type Connection, makeConnection } from './connection.ts';
import { adoptOfPublicWorker, insertWorkerConnection, renewLeases } from './connections.ts';
import { makeDispatcher } from './dispatcher.ts';
import { loseConnection } from './lost-connections.ts';
import { handleWorkerMessage } from './messages.ts';
import { makeOrders } from './orders.ts';

/** After a rejection nothing is sent on the connection for so long, so that another worker gets it. */
const rejectionPauseMs = 2000;

export interface Hub {
  /** A worker connected; returns what its socket's events are given to. */
  connect(input: {
    workerId: string;
    teamId: string | null;
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

  /** The public worker says nothing until it has work: what its name left behind is taken to be with it. */
  async function takeOn(connection: Connection): Promise<void> {
    const adopted = await adoptOfPublicWorker(engine.db, {
      connectionId: connection.id,
      workerId: connection.workerId,
      leaseSeconds: engine.timing.leaseSeconds,
    });
    for (const { id, runId } of adopted)
      connection.held.set(id, { runId, assignmentId: null, idle: false, leaving: false });
    connection.ready = true;
    dispatchSoon();
  }

  return {
    dispatch: dispatcher.dispatch,
    sendStopOrders: orders.send,
    connect: async ({ workerId, teamId, send, end }) => {
      const connection = makeConnection({ id: randomUUIDv7(), workerId, teamId, send });
      await insertWorkerConnection(engine.db, {
        id: connection.id,
        serviceInstanceId: options.serviceInstanceId,
        workerId,
        teamId,
      });
      connections.set(connection.id, connection);
      // Our worker says hello at once; the public one says nothing until it has work.
      const greeting = setTimeout(() => {
        takeOn(connection).catch((error: unknown) =>
          engine.log.error({ err: error }, 'a worker without a hello could not be taken on'),
        );
      }, 1000);
      return {
        message: async (message) => {
          clearTimeout(greeting);
          // Before the work is back in the queue: the notice of it may be faster than the answer to the statement.
          if (message.type === 'task_rejected') connection.pausedUntil = performance.now() + rejectionPauseMs;
          await handleWorkerMessage(engine, connection, message);
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
