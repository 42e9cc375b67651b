/** The worker connections of this process: what they hold, what they say, what they are told. */
import { randomUUIDv7 } from 'node:crypto';
import type { ServiceMessage, WorkerMessage } from '@runyard/contract/worker-protocol';
import { type Assignment, assignNext } from '../runs/assign.ts';
import type { Engine } from '../runs/engine.ts';
import { evictIdle, restingExecutions } from '../runs/idle.ts';
import { requeue } from '../runs/transitions.ts';
import { assignmentMessage } from './assignment-message.ts';
import { adoptOfPublicWorker, findStopOrders, insertWorkerConnection, renewLeases } from './connections.ts';
import { loseConnection } from './lost-connections.ts';
import { handleWorkerMessage } from './messages.ts';

/** Slots counted for a worker that does not say how many it has: it rejects what it cannot take. */
const assumedSlots = 1000;

/** After a rejection nothing is sent on the connection for so long, so that another worker gets it. */
const rejectionPauseMs = 2000;

/** An execution that a connection holds, with the assignment that brought it there. */
interface Held {
  readonly runId: string;
  readonly assignmentId: string | null;
  /** Its agent waits for a follow-up or for other runs: it holds no slot. As the worker was told last. */
  idle: boolean;
  /** Its end is decided: it makes room soon. */
  leaving: boolean;
}

/** One worker's WebSocket, as the hub sees it. */
export interface Connection {
  readonly id: string;
  readonly workerId: string;
  /** null: serves the hosted pool of all teams. */
  readonly teamId: string | null;
  instanceId: string | null;
  slots: number;
  draining: boolean;
  /** False until the public worker's first frame or our worker's hello was handled. */
  ready: boolean;
  pausedUntil: number;
  lastRenewedAt: number;
  readonly held: Map<string, Held>;
  readonly ordersSent: Map<string, number>;
  send(message: ServiceMessage): void;
}

export interface Hub {
  /** A worker connected; returns what its socket's events are given to. */
  connect(input: {
    workerId: string;
    teamId: string | null;
    send(message: ServiceMessage): void;
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
  let dispatching: Promise<void> | null = null;
  let again = false;
  let comparing: Promise<void> | null = null;
  let compareAgain = false;

  const busy = (connection: Connection): number => {
    let count = 0;
    for (const held of connection.held.values()) if (!held.idle) count += 1;
    return count;
  };

  const free = (connection: Connection): boolean =>
    connection.ready &&
    !connection.draining &&
    busy(connection) < connection.slots &&
    connection.pausedUntil <= performance.now();

  async function fill(connection: Connection): Promise<boolean> {
    const assignment = await assignNext(engine, {
      connectionId: connection.id,
      workerId: connection.workerId,
      workerInstance: connection.instanceId,
      pool: connection.teamId === null ? '' : connection.workerId,
      teamId: connection.teamId,
    });
    if (assignment === 'nothing') return false;
    if (assignment === 'contended') return true;
    connection.held.set(assignment.executionId, {
      runId: assignment.runId,
      assignmentId: assignment.assignmentId,
      idle: false,
      leaving: false,
    });
    if (connections.get(connection.id) !== connection) {
      await requeue(engine.db, {
        runId: assignment.runId,
        executionId: assignment.executionId,
        args: { assignment_id: assignment.assignmentId },
      });
      return false;
    }
    connection.send(assignmentMessage(assignment, options.agentArguments?.(assignment) ?? []));
    await evictBeyondLimit(connection);
    return true;
  }

  /** One pass over the connections, the least loaded first, until none has both a slot and work. */
  async function pass(): Promise<void> {
    const done = new Set<Connection>();
    for (;;) {
      const candidates = [...connections.values()].filter((connection) => free(connection) && !done.has(connection));
      const load = (connection: Connection) => busy(connection) / connection.slots;
      const [next] = candidates.sort((a, b) => load(a) - load(b));
      if (!next || closing) return;
      if (!(await fill(next))) {
        // All hosted connections see the same queue: where one finds nothing, none does.
        for (const connection of candidates)
          if (connection.teamId === next.teamId && (next.teamId === null || connection.workerId === next.workerId))
            done.add(connection);
      }
    }
  }

  async function dispatch(): Promise<void> {
    again = true;
    dispatching ??= (async () => {
      try {
        while (again && !closing) {
          again = false;
          await pass();
        }
      } finally {
        dispatching = null;
      }
    })();
    await dispatching;
  }

  const dispatchSoon = () => {
    dispatch().catch((error: unknown) =>
      engine.log.error({ err: error }, 'assigning work failed; the next poll tries again'),
    );
  };

  /** Sandboxes that wait keep their memory: the oldest leave where all are more than twice the slots, and all where the worker drains. */
  async function evictBeyondLimit(connection: Connection): Promise<void> {
    const staying = [...connection.held.values()].filter((held) => !held.leaving);
    const most = connection.draining ? 0 : 2 * connection.slots;
    if (staying.length <= most || !staying.some((held) => held.idle)) return;
    for (const executionId of await evictIdle(engine, connection.id, most)) {
      const held = connection.held.get(executionId);
      if (held) held.leaving = true;
    }
  }

  /** Compares who holds a slot with the record; tells our workers of each change. */
  async function tellIdle(): Promise<void> {
    const resting = await restingExecutions(engine.db, [...connections.keys()]);
    let gotFree = false;
    for (const connection of connections.values()) {
      for (const [executionId, held] of connection.held) {
        const phase = resting.get(executionId);
        held.leaving = phase === 'stopping';
        // What leaves takes no slot again.
        const isIdle = phase === 'idle' || phase === 'awaiting' || (held.leaving && held.idle);
        if (held.idle === isIdle) continue;
        held.idle = isIdle;
        gotFree ||= held.idle;
        if (connection.instanceId === null) continue;
        connection.send({
          type: 'task_idle',
          data: { task_id: held.runId, execution_id: executionId, idle: held.idle },
        });
      }
      await evictBeyondLimit(connection);
    }
    if (gotFree) dispatchSoon();
  }

  async function compareWithRecord(): Promise<void> {
    if (connections.size === 0) return;
    await tellIdle();
    for (const order of await findStopOrders(engine.db, [...connections.keys()])) {
      for (const connection of connections.values()) {
        if (!connection.held.has(order.id)) continue;
        // A worker that did not end it yet is told again when the time is up.
        const sent = connection.ordersSent.get(order.id);
        if (sent !== undefined && (sent === 0 || order.graceMs > 0)) continue;
        connection.ordersSent.set(order.id, order.graceMs);
        connection.send({
          type: 'task_cancellation',
          data: { task_id: order.runId, execution_id: order.id, grace_ms: order.graceMs },
        });
      }
    }
  }

  /** One comparison at a time, so that an older read never overrides a newer one; notices in between share the next. */
  async function sendStopOrders(): Promise<void> {
    compareAgain = true;
    comparing ??= (async () => {
      try {
        while (compareAgain && !closing) {
          compareAgain = false;
          await compareWithRecord();
        }
      } finally {
        comparing = null;
      }
    })();
    await comparing;
  }

  const sendOrdersSoon = () => {
    sendStopOrders().catch((error: unknown) =>
      engine.log.error({ err: error }, 'sending stop orders failed; the next poll tries again'),
    );
  };

  const holds = (runId: string): boolean => {
    for (const connection of connections.values())
      for (const held of connection.held.values()) if (held.runId === runId) return true;
    return false;
  };

  const unsubscribe = [
    engine.notices.onQueue(dispatchSoon),
    engine.notices.onAnyRun((runId) => {
      if (runId === null || holds(runId)) sendOrdersSoon();
    }),
  ];

  async function lose(connection: Connection): Promise<void> {
    connections.delete(connection.id);
    await loseConnection(engine, connection.id);
    dispatchSoon();
  }

  return {
    dispatch,
    sendStopOrders,
    connect: async ({ workerId, teamId, send }) => {
      const connection: Connection = {
        id: randomUUIDv7(),
        workerId,
        teamId,
        instanceId: null,
        slots: assumedSlots,
        draining: false,
        ready: false,
        pausedUntil: 0,
        lastRenewedAt: performance.now(),
        held: new Map(),
        ordersSent: new Map(),
        send,
      };
      await insertWorkerConnection(engine.db, {
        id: connection.id,
        serviceInstanceId: options.serviceInstanceId,
        workerId,
        teamId,
      });
      connections.set(connection.id, connection);
      // Our worker says hello at once; the public one says nothing until it has work.
      const greeting = setTimeout(() => {
        adoptOfPublicWorker(engine.db, {
          connectionId: connection.id,
          workerId,
          leaseSeconds: engine.timing.leaseSeconds,
        })
          .then((adopted) => {
            for (const execution of adopted)
              connection.held.set(execution.id, {
                runId: execution.runId,
                assignmentId: null,
                idle: false,
                leaving: false,
              });
            connection.ready = true;
            dispatchSoon();
          })
          .catch((error: unknown) =>
            engine.log.error({ err: error }, 'a worker without a hello could not be taken on'),
          );
      }, 1000);
      return {
        message: async (message) => {
          clearTimeout(greeting);
          await handleWorkerMessage(engine, connection, message);
          if (message.type === 'task_rejected') connection.pausedUntil = performance.now() + rejectionPauseMs;
          if (message.type === 'worker_hello') sendOrdersSoon();
          dispatchSoon();
        },
        alive: () => {
          const now = performance.now();
          if (now - connection.lastRenewedAt < (engine.timing.leaseSeconds * 1000) / 6) return;
          connection.lastRenewedAt = now;
          renewLeases(engine.db, connection.id, engine.timing.leaseSeconds).catch((error: unknown) =>
            engine.log.warn({ err: error }, 'renewing leases failed'),
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
      await dispatching;
      await comparing;
      for (const connection of [...connections.values()]) await lose(connection);
    },
  };
}
