import type { Engine } from '../executions/engine.ts';
import { requeue } from '../executions/transitions/transitions.ts';
import { dropWorkerConnection, findConnectionsOfDeadServices } from './connection-rows.ts';
import { findAssigned } from './executions-of-connections.ts';

/**
 * Handles the loss of a connection: assignments that were not claimed go back to the queue, and for the other executions the
 * worker has the grace to connect again.
 */
export async function loseConnection(engine: Engine, connectionId: string): Promise<void> {
  for (const assigned of await findAssigned(engine.db, connectionId)) {
    await requeue(engine.db, { ...assigned, args: { assignment_id: assigned.assignmentId } });
  }
  await dropWorkerConnection(engine.db, connectionId, engine.timing.reconnectGraceSeconds);
}

/** Handles the loss of all connections of service processes that died. `asker` is the calling process. */
export async function dropConnectionsOfDeadServices(
  engine: Engine,
  asker: string,
  silentSeconds: number,
): Promise<void> {
  for (const connectionId of await findConnectionsOfDeadServices(engine.db, asker, silentSeconds)) {
    await loseConnection(engine, connectionId);
  }
}
