/** Compares the executions of this process's connections with the database, and sends their workers the changes. */
import type { ExecutionDeps } from '../executions/deps.ts';
import { restingExecutions } from '../executions/idle/idle.ts';
import { findStopOrders } from './executions-of-connections.ts';
import { oneAtATime } from './one-at-a-time.ts';
import { evictBeyondLimit, type OpenConnections } from './open-connection.ts';

export interface Orders {
  /** Orders workers to end sandboxes, and reports which sandboxes take no slot. */
  send(): Promise<void>;
  /** The same, without waiting for it; a failure is logged. */
  sendSoon(): void;
  stop(): Promise<void>;
}

/** Makes the orders of this process. Calls `onFreeSlot` when an execution gave its slot back. */
export function makeOrders(deps: ExecutionDeps, connections: OpenConnections, onFreeSlot: () => void): Orders {
  /** Tells our workers of each execution that takes a slot now, or takes none any more. */
  async function tellIdle(): Promise<void> {
    const resting = await restingExecutions(deps.db, [...connections.keys()]);
    let isFreed = false;
    for (const connection of connections.values()) {
      for (const [executionId, held] of connection.executions) {
        const phase = resting.get(executionId);
        held.leaving = phase === 'stopping';
        // An agent that was asked to leave never takes a slot again.
        const isIdle = phase === 'idle' || phase === 'awaiting' || (held.leaving && held.idle);
        if (held.idle === isIdle) continue;
        held.idle = isIdle;
        isFreed ||= held.idle;
        if (connection.instanceId === null) continue;
        connection.send({
          type: 'task_idle',
          data: { task_id: held.runId, execution_id: executionId, idle: held.idle },
        });
      }
      await evictBeyondLimit(deps, connection);
    }
    if (isFreed) onFreeSlot();
  }

  async function compareWithRecord(): Promise<void> {
    if (connections.size === 0) return;
    await tellIdle();
    for (const order of await findStopOrders(deps.db, [...connections.keys()])) {
      const connection = connections.get(order.connectionId);
      if (!connection?.executions.has(order.id)) continue;
      // The order is repeated once, when the grace is over and the worker has not ended the sandbox.
      const sent = connection.ordersSent.get(order.id);
      if (sent !== undefined && (sent === 0 || order.graceMs > 0)) continue;
      connection.ordersSent.set(order.id, order.graceMs);
      connection.send({
        type: 'task_cancellation',
        data: { task_id: order.runId, execution_id: order.id, grace_ms: order.graceMs },
      });
    }
  }

  const comparisons = oneAtATime(compareWithRecord);
  return {
    send: comparisons.run,
    sendSoon: () => {
      comparisons
        .run()
        .catch((error: unknown) =>
          deps.log.error({ err: error }, 'sending stop orders failed; the next poll tries again'),
        );
    },
    stop: comparisons.stop,
  };
}
