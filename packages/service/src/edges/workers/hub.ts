/** The hub: applies the messages on the workers' WebSockets of this process to the database. */
import { randomUUIDv7 } from 'node:crypto';
import type { ServiceMessage, WorkerMessage } from '@runyard/contract/workers/worker-protocol';
import { sqlState } from '../../platform/store/database/connections.ts';
import type { ExecutionDeps } from '../../runs/executions/deps.ts';
import { insertWorkerConnection, renewLeases } from '../../runs/executions/lease/connection-rows.ts';
import type { Assignment } from '../../runs/executions/queue/assign.ts';
import { makeDispatcher } from './dispatcher.ts';
import { greetPublicWorker } from './greet.ts';
import { loseConnection } from './lost-connections.ts';
import { handleWorkerMessage, isNumbered, isOfWorker } from './messages.ts';
import { makeConnection, type OpenConnection } from './open-connection.ts';
import { makeOrders } from './orders.ts';
import { ConnectionEnded } from './rights.ts';

/** After a rejection the connection gets no assignment for this time, so that another worker gets the execution. */
const rejectionPauseMs = 2000;

/** A worker that has sent no hello after this time counts as a public worker. */
const helloWaitMs = 1000;

/** SQLSTATE class 22: PostgreSQL cannot store a value of the message. */
const isDataError = (error: unknown): boolean => sqlState(error)?.startsWith('22') ?? false;

export interface Hub {
  /** Registers a worker's new connection; returns the handlers of its socket's events. */
  connect(input: {
    workerId: string;
    /** null means the hosted pool of all teams. */
    teamId: string | null;
    /** The key that opened the connection. For each message, the hub checks that this key is still valid. */
    keyId: string;
    send(message: ServiceMessage): void;
    /** Closes the connection, so that the worker opens a new one. */
    end(): void;
  }): Promise<HubConnection>;
  /** Assigns executions until no slot is free or no execution is queued. */
  dispatch(): Promise<void>;
  /** Records the ends of connections that could not be stored when the connections closed. Sends no statement if there is no such connection. */
  recordLosses(): Promise<void>;
  /** Orders workers to end sandboxes, and reports which sandboxes take no slot. */
  sendStopOrders(): Promise<void>;
  close(): Promise<void>;
}

export interface HubConnection {
  message(message: WorkerMessage): Promise<void>;
  /** Records that the worker is alive. Called for each ping and message. */
  alive(): void;
  closed(): Promise<void>;
}

export interface HubOptions {
  readonly serviceInstanceId: string;
  /** Returns the run's arguments for the agent. */
  readonly agentArguments?: (assignment: Assignment) => string[];
  /** Image with the agent for public workers. With this image, public workers can run images. Absent: public workers start the agent as a
   * program of their machine. */
  readonly sidecarImage?: string | undefined;
}

interface NewConnection extends Pick<Parameters<Hub['connect']>[0], 'send' | 'end'> {
  readonly connection: OpenConnection;
  readonly row: Parameters<typeof insertWorkerConnection>[1];
  /** True if the hub can tell a public worker which image has the agent. */
  readonly knowsSidecar: boolean;
}

/** The functions of the hub that a connection calls. */
interface HubOfConnection {
  /** Returns true until the end of the connection. */
  isOpen(): boolean;
  readonly queueChanged: () => void;
  readonly slotFreed: () => void;
  readonly sendOrders: () => void;
  onClosed(): Promise<void>;
}

/** Serves a connection whose row was inserted. */
function serveConnection(
  deps: ExecutionDeps,
  { connection, row, send, end, knowsSidecar }: NewConnection,
  hub: HubOfConnection,
): HubConnection {
  let greetedAsPublic: Promise<void> | null = null;
  const greetAsPublic = () => {
    clearTimeout(helloWait);
    greetedAsPublic ??= greetPublicWorker(deps, connection, knowsSidecar).then(hub.queueChanged);
    return greetedAsPublic;
  };
  // Runyard's worker sends its hello at once; the public worker sends nothing until it has work.
  const helloWait = setTimeout(() => {
    greetAsPublic().catch((error: unknown) => {
      deps.log.error({ err: error, worker: row.workerId }, 'greeting a worker without a hello failed');
      end();
    });
  }, helloWaitMs);

  /**
   * Applies a message. `freed`: the connection may take more work; `row_lost`: the row of the connection was deleted, so the worker has
   * to connect again.
   */
  const handle = async (message: WorkerMessage): Promise<'applied' | 'freed' | 'row_lost'> => {
    try {
      return (await handleWorkerMessage(deps, connection, message)) ? 'freed' : 'applied';
    } catch (error) {
      const isHere = hub.isOpen() && !isOfWorker(message);
      if (!(error instanceof ConnectionEnded) || !isHere) throw error;
      // Another process has deleted the row. Insert the row again and apply the message, because the public worker does not repeat its
      // messages.
      await insertWorkerConnection(deps.db, row);
      await handleWorkerMessage(deps, connection, message);
      return 'row_lost';
    }
  };
  const acknowledge = (message: WorkerMessage) => {
    if (!isNumbered(message)) return;
    send({ type: 'messages_applied', data: { seq: message.seq } });
  };
  return {
    message: async (message) => {
      clearTimeout(helloWait);
      // Greet a public worker before its first message, because the message may be about an execution of an earlier, lost connection.
      if (!isOfWorker(message) && !connection.ready) await greetAsPublic();
      else await greetedAsPublic;
      // Begin the pause before the execution is queued again. The notice about the queue may arrive before the answer of the statement
      // that queues it, and this connection would then get the execution again.
      if (message.type === 'task_rejected') connection.pausedUntil = performance.now() + rejectionPauseMs;
      const handled = await handle(message).catch((error: unknown) => {
        // PostgreSQL would reject this message each time. Acknowledge it, so that the worker does not send it again. When the worker
        // sends its next hello, the service compares this hello with the database.
        if (isDataError(error)) acknowledge(message);
        throw error;
      });
      acknowledge(message);
      if (handled === 'row_lost') end();
      if (message.type === 'worker_hello') hub.sendOrders();
      if (handled === 'applied') return;
      // After a hello, the worker may accept runs that it did not accept before.
      if (isOfWorker(message)) hub.queueChanged();
      else hub.slotFreed();
    },
    alive: () => {
      const now = performance.now();
      if (now - connection.lastRenewedAt < (deps.timing.leaseSeconds * 1000) / 6) return;
      connection.lastRenewedAt = now;
      renewLeases(deps.db, connection.id, deps.timing).then(
        (isKnown) => {
          if (isKnown || !hub.isOpen()) return;
          deps.log.warn(
            { worker: row.workerId },
            'another process counted this service process as dead; the worker connects again',
          );
          end();
        },
        (error: unknown) => deps.log.warn({ err: error }, 'renewing leases failed'),
      );
    },
    closed: async () => {
      clearTimeout(helloWait);
      await hub.onClosed();
    },
  };
}

/** Opens the hub. The hub assigns work when it gets notices. The caller also calls `dispatch` at a slow interval. */
export function openHub(deps: ExecutionDeps, options: HubOptions): Hub {
  const connections = new Map<string, OpenConnection>();
  let closing = false;
  const dispatcher = makeDispatcher(deps, connections, options.agentArguments ?? (() => []), options.sidecarImage);
  const { queueChanged, slotFreed } = dispatcher;
  const orders = makeOrders(deps, connections, queueChanged);

  const holds = (runId: string): boolean => {
    for (const connection of connections.values())
      for (const execution of connection.executions.values()) if (execution.runId === runId) return true;
    return false;
  };

  const unsubscribe = [
    deps.notices.onQueue(queueChanged),
    deps.notices.onAnyAgent((runId) => {
      if (runId === null || holds(runId)) orders.sendSoon();
    }),
  ];

  /** Ids of connections whose end is not stored yet, because the database did not answer. */
  const unrecorded = new Set<string>();

  async function recordLoss(id: string): Promise<void> {
    unrecorded.add(id);
    await loseConnection(deps, id);
    unrecorded.delete(id);
  }

  async function lose(connection: OpenConnection): Promise<void> {
    connections.delete(connection.id);
    await recordLoss(connection.id);
    queueChanged();
  }

  /**
   * Records the ends of connections that could not be recorded earlier. Until the end of a connection is recorded, its worker counts as
   * connected, and no other connection takes over the executions.
   */
  async function recordLosses(): Promise<void> {
    for (const id of [...unrecorded])
      await recordLoss(id).catch((error: unknown) =>
        deps.log.warn({ err: error }, 'the end of the connection of a worker is not recorded yet'),
      );
  }

  return {
    dispatch: dispatcher.dispatch,
    recordLosses,
    sendStopOrders: orders.send,
    connect: async ({ workerId, teamId, keyId, send, end }) => {
      const connection = makeConnection({ id: randomUUIDv7(), workerId, teamId, send });
      const row = { id: connection.id, serviceInstanceId: options.serviceInstanceId, workerId, teamId, keyId };
      await insertWorkerConnection(deps.db, row).catch((error: unknown) => {
        // The row may exist although the insert failed, because the answer of the database may have been lost.
        unrecorded.add(connection.id);
        throw error;
      });
      connections.set(connection.id, connection);

      return serveConnection(
        deps,
        { connection, row, send, end, knowsSidecar: options.sidecarImage !== undefined },
        {
          isOpen: () => connections.has(connection.id),
          queueChanged,
          slotFreed,
          sendOrders: orders.sendSoon,
          onClosed: async () => {
            if (!closing) await lose(connection);
          },
        },
      );
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
