/** Compares the executions of this process's connections with the database, and sends their workers the changes. */

import { oneAtATime } from '../../platform/serving/one-at-a-time.ts';
import type { ExecutionDeps } from '../../runs/executions/deps.ts';
import { type RestingExecution, restingExecutions } from '../../runs/executions/idle/idle.ts';
import { evictBeyondLimit, type OpenConnections } from './open-connection.ts';

export interface Orders {
  /** Orders workers to end sandboxes, and reports which sandboxes take no slot. */
  send(): Promise<void>;
  /** Calls `send` at once, or `restMs` after the last call if the last call was less than `restMs` ago. Returns at once, and logs a failure. */
  sendSoon(): void;
  stop(): Promise<void>;
}

/** Minimum time between two comparisons. Each notice about an agent requests a comparison. */
const restMs = 100;

/** Makes the orders of this process. Calls `onFreeSlot` when an execution no longer uses its slot. */
export function makeOrders(deps: ExecutionDeps, connections: OpenConnections, onFreeSlot: () => void): Orders {
  /** Notifies Runyard's workers when an execution begins or stops using a slot. */
  async function tellIdle(resting: ReadonlyMap<string, RestingExecution>): Promise<void> {
    let isFreed = false;
    for (const connection of connections.values()) {
      for (const [executionId, held] of connection.executions) {
        const phase = resting.get(executionId)?.phase;
        held.leaving = phase === 'stopping';
        // An idle agent that was asked to end never uses a slot again.
        const isIdle = phase === 'idle' || phase === 'awaiting' || (held.leaving && held.idle);
        const awaits = phase === 'awaiting';
        const isKnown = held.idle === isIdle && held.awaits === awaits;
        held.awaits = awaits;
        if (isKnown) continue;
        isFreed ||= isIdle && !held.idle;
        held.idle = isIdle;
        if (connection.instanceId === null) continue;
        connection.send({
          type: 'task_idle',
          data: { task_id: held.runId, execution_id: executionId, idle: held.idle, awaits },
        });
      }
      await evictBeyondLimit(deps, connection);
    }
    if (isFreed) onFreeSlot();
  }

  async function compareWithRecord(): Promise<void> {
    // Orders concern only executions that this process has assigned, or that a worker has listed.
    if (![...connections.values()].some(({ executions }) => executions.size > 0)) return;
    const resting = await restingExecutions(deps.db, [...connections.keys()]);
    await tellIdle(resting);
    for (const order of resting.values()) {
      if (!order.mustEnd) continue;
      const connection = connections.get(order.connectionId);
      if (!connection?.executions.has(order.id)) continue;
      // Repeat the order only once: when the grace is over and the worker has not ended the sandbox.
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
  let rest: NodeJS.Timeout | undefined;
  let isAskedAgain = false;
  const sendSoon = (): void => {
    if (rest) {
      isAskedAgain = true;
      return;
    }
    rest = setTimeout(() => {
      rest = undefined;
      if (isAskedAgain) sendSoon();
    }, restMs);
    isAskedAgain = false;
    comparisons
      .run()
      .catch((error: unknown) =>
        deps.log.error({ err: error }, 'sending stop orders failed; the next poll tries again'),
      );
  };
  return {
    send: comparisons.run,
    sendSoon,
    stop: async () => {
      isAskedAgain = false;
      clearTimeout(rest);
      await comparisons.stop();
    },
  };
}
