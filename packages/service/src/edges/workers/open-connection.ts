import type { ServiceMessage } from '@runyard/contract/workers/worker-protocol';
import type { ExecutionDeps } from '../../runs/executions/deps.ts';
import { evictIdle } from '../../runs/executions/idle/idle.ts';
import { leastDepth } from '../../runs/executions/queue/may-take.ts';

/** Assumed number of slots of a worker that does not report its slots. Such a worker rejects the assignments that it cannot take. */
const assumedSlots = 1000;

/** An execution of a connection, with its assignment. */
interface HeldExecution {
  readonly runId: string;
  readonly assignmentId: string | null;
  /**
   * True while the agent waits for a follow-up or for other runs, and takes no slot. This is the last value that was sent to the worker.
   */
  idle: boolean;
  /** True while the agent waits for other runs. Such an agent uses no slot and is not evicted. Undefined: the worker listed the execution
   * as idle, so the reason is not known. */
  awaits: boolean | undefined;
  /** True: the sandbox is being stopped. */
  leaving: boolean;
}

/** An open WebSocket of a worker, as the hub of this process sees it. */
export interface OpenConnection {
  readonly id: string;
  readonly workerId: string;
  /** null: the worker serves the hosted pool of all teams. */
  readonly teamId: string | null;
  /** Identifies the running program of Runyard's own worker. null: the connection has sent no hello. */
  instanceId: string | null;
  slots: number;
  /** Whether the worker reports that it can run container images. */
  runsImages: boolean;
  /** Whether the worker knows approval rules about hosts. */
  holdsHosts: boolean;
  /** Whether the worker can run services from container images. */
  runsServiceImages: boolean;
  draining: boolean;
  /** Why the worker takes no new runs, as it reports; undefined: it takes runs. */
  problem: string | undefined;
  /** True after the hello of our worker, or the first message of a public worker, was handled. */
  ready: boolean;
  /** The connection gets no assignment before this time of `performance.now()`. */
  pausedUntil: number;
  /** Time of `performance.now()`. */
  lastRenewedAt: number;
  readonly executions: Map<string, HeldExecution>;
  /** The grace in milliseconds of the last stop order, by execution. */
  readonly ordersSent: Map<string, number>;
  send(message: ServiceMessage): void;
}

/** The open connections of this process, by id. */
export type OpenConnections = ReadonlyMap<string, OpenConnection>;

/** Returns a connection that has just been opened and has no executions. */
export function makeConnection(given: Pick<OpenConnection, 'id' | 'workerId' | 'teamId' | 'send'>): OpenConnection {
  return {
    ...given,
    instanceId: null,
    slots: assumedSlots,
    runsImages: false,
    holdsHosts: false,
    runsServiceImages: false,
    draining: false,
    problem: undefined,
    ready: false,
    pausedUntil: 0,
    lastRenewedAt: performance.now(),
    executions: new Map(),
    ordersSent: new Map(),
  };
}

/** Returns how many slots of the worker the executions of the connection take. */
export function takenSlots(connection: OpenConnection): number {
  let count = 0;
  for (const execution of connection.executions.values()) if (!execution.idle) count += 1;
  return count;
}

/**
 * Returns the least depth that a run must have in its tree of runs to be assigned to the connection. The depth grows with the number of the
 * connection's sandboxes that work or wait for other runs. This limits the number of sandboxes.
 */
export const leastDepthOf = (connection: OpenConnection): number => leastDepth(liveOf(connection), connection.slots);

function liveOf(connection: OpenConnection): number {
  let live = 0;
  for (const { idle, awaits } of connection.executions.values()) if (!idle || awaits) live += 1;
  return live;
}

/** Returns how many slots of the connection are free for runs of the depth `leastDepthOf(connection)`. */
export function freeSlotsOf(connection: OpenConnection): number {
  const live = liveOf(connection);
  const untilDeeper = (leastDepthOf(connection) + 2) * Math.max(1, connection.slots) - live;
  return Math.min(connection.slots - takenSlots(connection), untilDeeper);
}

/** Returns whether an execution may be assigned to the connection now. */
export const hasFreeSlot = (connection: OpenConnection): boolean =>
  connection.ready &&
  !connection.draining &&
  connection.problem === undefined &&
  takenSlots(connection) < connection.slots &&
  connection.pausedUntil <= performance.now();

/**
 * Asks agents that wait for a follow-up to leave, because their sandboxes use memory. If the worker drains, asks all of these agents.
 * Otherwise asks some of them if the worker has more than twice as many sandboxes as slots.
 */
export async function evictBeyondLimit(deps: ExecutionDeps, connection: OpenConnection): Promise<void> {
  const staying = [...connection.executions.values()].filter((execution) => !execution.leaving);
  const most = connection.draining ? 0 : 2 * connection.slots;
  if (staying.length <= most || !staying.some((execution) => execution.idle)) return;
  for (const executionId of await evictIdle(deps, connection.id, most)) {
    const execution = connection.executions.get(executionId);
    if (execution) execution.leaving = true;
  }
}
