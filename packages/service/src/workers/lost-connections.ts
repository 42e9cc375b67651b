import type { Engine } from '../executions/engine.ts';
import { requeue } from '../executions/transitions/transitions.ts';
import { dropWorkerConnection, findAssigned, findConnectionsOfDeadServices } from './connections.ts';

/** A connection is gone for good: what it was handed and nobody claimed goes back to the queue, the rest has the grace. */
export async function loseConnection(engine: Engine, connectionId: string): Promise<void> {
  for (const assigned of await findAssigned(engine.db, connectionId)) {
    await requeue(engine.db, { ...assigned, args: { assignment_id: assigned.assignmentId } });
  }
  await dropWorkerConnection(engine.db, connectionId, engine.timing.reconnectGraceSeconds);
}

/** Does for service processes that died what they would have done when their connections closed. `asker`: the process that calls it. */
export async function dropConnectionsOfDeadServices(
  engine: Engine,
  asker: string,
  silentSeconds: number,
): Promise<void> {
  for (const connectionId of await findConnectionsOfDeadServices(engine.db, asker, silentSeconds)) {
    await loseConnection(engine, connectionId);
  }
}
