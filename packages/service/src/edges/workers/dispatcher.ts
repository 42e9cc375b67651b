/** Assigns queued executions to the connections of this process that have free slots. */

import { oneAtATime } from '../../platform/serving/one-at-a-time.ts';
import type { ExecutionDeps } from '../../runs/executions/deps.ts';
import { type Assignment, assignNext } from '../../runs/executions/queue/assign.ts';
import { requeue } from '../../runs/executions/transitions/transitions.ts';
import { assignmentMessage } from './assignment-message.ts';
import {
  evictBeyondLimit,
  hasFreeSlot,
  leastDepthOf,
  type OpenConnection,
  type OpenConnections,
  takenSlots,
} from './open-connection.ts';

export interface Dispatcher {
  /** Assigns executions until no slot is free or none is queued. */
  dispatch(): Promise<void>;
  /** The same, without waiting for it; a failure is logged. */
  dispatchSoon(): void;
  stop(): Promise<void>;
}

const isOfSamePool = (one: OpenConnection, other: OpenConnection): boolean =>
  one.teamId === other.teamId && (other.teamId === null || one.workerId === other.workerId);

/** Makes the dispatcher of this process. `agentArguments` returns the run's arguments for the agent. `sidecarImage` has the agent for public workers. */
export function makeDispatcher(
  deps: ExecutionDeps,
  connections: OpenConnections,
  agentArguments: (assignment: Assignment) => string[],
  sidecarImage?: string,
): Dispatcher {
  let isStopped = false;

  /** Assigns one execution to the connection. Returns false where none is queued for it. */
  async function fill(connection: OpenConnection): Promise<boolean> {
    const assignment = await assignNext(deps, {
      connectionId: connection.id,
      workerId: connection.workerId,
      workerInstance: connection.instanceId,
      pool: connection.teamId === null ? '' : connection.workerId,
      teamId: connection.teamId,
      runsImages: connection.runsImages,
      leastDepth: leastDepthOf(connection),
    });
    if (assignment === 'nothing') return false;
    if (assignment === 'contended') return true;
    const { runId, assignmentId, executionId } = assignment;
    // The public worker reports no end of a task that it handed to another machine. All earlier executions of the run have ended.
    for (const [earlier, held] of connection.executions)
      if (held.runId === runId) connection.executions.delete(earlier);
    connection.executions.set(executionId, { runId, assignmentId, idle: false, awaits: false, leaving: false });
    // The connection was lost while the statement ran.
    if (connections.get(connection.id) !== connection) {
      await requeue(deps.db, { runId, executionId, args: { assignment_id: assignmentId } });
      return false;
    }
    const sidecar = connection.instanceId === null ? sidecarImage : undefined;
    connection.send(assignmentMessage(assignment, agentArguments(assignment), sidecar));
    await evictBeyondLimit(deps, connection);
    return true;
  }

  /** Fills the connections, the least loaded first, until none has both a free slot and a queued execution. */
  async function pass(): Promise<void> {
    const done = new Set<OpenConnection>();
    for (;;) {
      const candidates = [...connections.values()].filter(
        (connection) => hasFreeSlot(connection) && !done.has(connection),
      );
      const load = (connection: OpenConnection) => takenSlots(connection) / connection.slots;
      const [next] = candidates.sort((a, b) => load(a) - load(b));
      if (!next || isStopped) return;
      if (!(await fill(next))) {
        // Connections of one pool see the same queue, except for runs with an image: if one finds nothing, none does.
        for (const connection of candidates)
          if (isOfSamePool(connection, next) && (next.runsImages || !connection.runsImages)) done.add(connection);
      }
    }
  }

  const passes = oneAtATime(pass);
  return {
    dispatch: passes.run,
    dispatchSoon: () => {
      passes
        .run()
        .catch((error: unknown) => deps.log.error({ err: error }, 'assigning work failed; the next poll tries again'));
    },
    stop: async () => {
      isStopped = true;
      await passes.stop();
    },
  };
}
