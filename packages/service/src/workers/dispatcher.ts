/** Hands waiting work to the connections of this process that have free slots. */

import type { Engine } from '../executions/engine.ts';
import { type Assignment, assignNext } from '../executions/queue/assign.ts';
import { requeue } from '../executions/transitions/transitions.ts';
import { assignmentMessage } from './assignment-message.ts';
import { busySlots, type Connection, type Connections, evictBeyondLimit, isFree } from './connection.ts';
import { oneAtATime } from './one-at-a-time.ts';

export interface Dispatcher {
  /** Assigns waiting work until slots or work run out. */
  dispatch(): Promise<void>;
  /** The same, without waiting for it; a failure is logged. */
  dispatchSoon(): void;
  stop(): Promise<void>;
}

/** `agentArguments`: the arguments for the agent that follow from the run. */
export function makeDispatcher(
  engine: Engine,
  connections: Connections,
  agentArguments: (assignment: Assignment) => string[],
): Dispatcher {
  let isStopped = false;

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
    const { runId, assignmentId, executionId } = assignment;
    connection.held.set(executionId, { runId, assignmentId, idle: false, leaving: false });
    if (connections.get(connection.id) !== connection) {
      await requeue(engine.db, { runId, executionId, args: { assignment_id: assignmentId } });
      return false;
    }
    connection.send(assignmentMessage(assignment, agentArguments(assignment)));
    await evictBeyondLimit(engine, connection);
    return true;
  }

  /** One pass over the connections, the least loaded first, until none has both a slot and work. */
  async function pass(): Promise<void> {
    const done = new Set<Connection>();
    for (;;) {
      const candidates = [...connections.values()].filter((connection) => isFree(connection) && !done.has(connection));
      const load = (connection: Connection) => busySlots(connection) / connection.slots;
      const [next] = candidates.sort((a, b) => load(a) - load(b));
      if (!next || isStopped) return;
      if (!(await fill(next))) {
        // All hosted connections see the same queue: where one finds nothing, none does.
        for (const connection of candidates)
          if (connection.teamId === next.teamId && (next.teamId === null || connection.workerId === next.workerId))
            done.add(connection);
      }
    }
  }

  const passes = oneAtATime(pass);
  return {
    dispatch: passes.run,
    dispatchSoon: () => {
      passes
        .run()
        .catch((error: unknown) =>
          engine.log.error({ err: error }, 'assigning work failed; the next poll tries again'),
        );
    },
    stop: async () => {
      isStopped = true;
      await passes.stop();
    },
  };
}
