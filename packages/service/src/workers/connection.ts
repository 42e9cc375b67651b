import type { ServiceMessage } from '@runyard/contract/worker-protocol';
import type { Engine } from '../executions/engine.ts';
import { evictIdle } from '../executions/idle/idle.ts';

/** Slots counted for a worker that does not say how many it has: it rejects what it cannot take. */
const assumedSlots = 1000;

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
  /** Of our own worker, as the service named it; null: it said no hello. */
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

/** The connections of this process, by id. */
export type Connections = ReadonlyMap<string, Connection>;

/** A connection that has just been made and holds nothing. */
export function makeConnection(given: Pick<Connection, 'id' | 'workerId' | 'teamId' | 'send'>): Connection {
  return {
    ...given,
    instanceId: null,
    slots: assumedSlots,
    draining: false,
    ready: false,
    pausedUntil: 0,
    lastRenewedAt: performance.now(),
    held: new Map(),
    ordersSent: new Map(),
  };
}

/** Slots that are taken. */
export function busySlots(connection: Connection): number {
  let count = 0;
  for (const held of connection.held.values()) if (!held.idle) count += 1;
  return count;
}

/** True where work may be sent on it now. */
export const isFree = (connection: Connection): boolean =>
  connection.ready &&
  !connection.draining &&
  busySlots(connection) < connection.slots &&
  connection.pausedUntil <= performance.now();

/** Sandboxes that wait keep their memory: some leave where all are more than twice the slots, and all where the worker drains. */
export async function evictBeyondLimit(engine: Engine, connection: Connection): Promise<void> {
  const staying = [...connection.held.values()].filter((held) => !held.leaving);
  const most = connection.draining ? 0 : 2 * connection.slots;
  if (staying.length <= most || !staying.some((held) => held.idle)) return;
  for (const executionId of await evictIdle(engine, connection.id, most)) {
    const held = connection.held.get(executionId);
    if (held) held.leaving = true;
  }
}
