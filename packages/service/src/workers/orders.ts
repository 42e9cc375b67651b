/** Compares what the connections of this process hold with the record, and tells their workers. */
import type { Engine } from '../executions/engine.ts';
import { restingExecutions } from '../executions/idle/idle.ts';
import { type Connections, evictBeyondLimit } from './connection.ts';
import { findStopOrders } from './connections.ts';
import { oneAtATime } from './one-at-a-time.ts';

export interface Orders {
  /** Tells workers to end what was cancelled or timed out, and which of their sandboxes hold no slot. */
  send(): Promise<void>;
  /** The same, without waiting for it; a failure is logged. */
  sendSoon(): void;
  stop(): Promise<void>;
}

/** `gotFree` is called when an execution gave its slot back. */
export function makeOrders(engine: Engine, connections: Connections, gotFree: () => void): Orders {
  /** Compares who holds a slot with the record; tells our workers of each change. */
  async function tellIdle(): Promise<void> {
    const resting = await restingExecutions(engine.db, [...connections.keys()]);
    let isFreed = false;
    for (const connection of connections.values()) {
      for (const [executionId, held] of connection.held) {
        const phase = resting.get(executionId);
        held.leaving = phase === 'stopping';
        // What leaves takes no slot again.
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
      await evictBeyondLimit(engine, connection);
    }
    if (isFreed) gotFree();
  }

  async function compareWithRecord(): Promise<void> {
    if (connections.size === 0) return;
    await tellIdle();
    for (const order of await findStopOrders(engine.db, [...connections.keys()])) {
      // Another connection may still have it in mind, which the record took it from.
      const connection = connections.get(order.connectionId);
      if (!connection?.held.has(order.id)) continue;
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

  const comparisons = oneAtATime(compareWithRecord);
  return {
    send: comparisons.run,
    sendSoon: () => {
      comparisons
        .run()
        .catch((error: unknown) =>
          engine.log.error({ err: error }, 'sending stop orders failed; the next poll tries again'),
        );
    },
    stop: comparisons.stop,
  };
}
