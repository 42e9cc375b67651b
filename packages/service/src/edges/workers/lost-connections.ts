import type { ExecutionDeps } from '../../runs/executions/deps.ts';
import { dropWorkerConnection, findConnectionsOfDeadServices } from '../../runs/executions/lease/connection-rows.ts';
import { requeue } from '../../runs/executions/transitions/transitions.ts';
import { findAssigned } from './executions-of-connections.ts';

/**
 * Handles the loss of a connection: assignments that were not claimed go back to the queue, and for the other executions the
 * worker has the grace to connect again.
 */
export async function loseConnection(deps: ExecutionDeps, connectionId: string): Promise<void> {
  for (const assigned of await findAssigned(deps.db, connectionId)) {
    await requeue(deps.db, { ...assigned, args: { assignment_id: assigned.assignmentId } });
  }
  await dropWorkerConnection(deps.db, connectionId, deps.timing.reconnectGraceSeconds);
}

/** Handles the loss of all connections of service processes that died. `asker` is the calling process. */
export async function dropConnectionsOfDeadServices(
  deps: ExecutionDeps,
  asker: string,
  silentSeconds: number,
): Promise<void> {
  for (const connectionId of await findConnectionsOfDeadServices(deps.db, asker, silentSeconds)) {
    await loseConnection(deps, connectionId);
  }
}
