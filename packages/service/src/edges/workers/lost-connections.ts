/** Reads the executions that the database assigns to a worker's connection. */
import type { Queryable } from '../../platform/store/database/database.ts';
import { defineStatement, uuid } from '../../platform/store/database/statement.ts';
import type { ExecutionDeps } from '../../runs/executions/deps.ts';
import { dropWorkerConnection, findConnectionsOfDeadServices } from '../../runs/executions/lease/connection-rows.ts';
import { sandboxPhases } from '../../runs/executions/phases.ts';
import { hasKey, isInPool } from '../../runs/executions/queue/may-take.ts';
import { takeBack, type UnclaimedAssignment } from '../../runs/executions/reconcile/take-back.ts';

const assignedTo = defineStatement({
  name: 'find_assigned_to_connection',
  text: `
    SELECT r.id AS "runId", e.id AS "executionId", r.assignment_id AS "assignmentId"
    FROM executions e JOIN runs r ON r.id = e.run_id AND r.current_execution_id = e.id
    WHERE e.connection_id = $1 AND e.is_live AND e.phase = 'assigned' AND r.assignment_id IS NOT NULL`,
  row: { runId: uuid, executionId: uuid, assignmentId: uuid },
});

/** Returns the assignments of a connection whose worker has not claimed them yet. */
export async function findAssigned(db: Queryable, connectionId: string): Promise<UnclaimedAssignment[]> {
  return await db.query(assignedTo, [connectionId]);
}

const missingFrom = defineStatement({
  name: 'find_held_by_instances',
  text: `
    SELECT e.id FROM executions e JOIN worker_connections c ON c.id = $1
    WHERE e.worker_instance = ANY($2::text[]) AND e.is_live AND e.phase IN ${sandboxPhases} AND NOT (e.id = ANY($3::uuid[]))
      AND c.worker_id = e.worker_id AND ${isInPool('e', 'c')} AND ${hasKey('c')}`,
  row: { id: uuid },
});

/** Returns the executions that the database assigns to these instances of the connection's worker, but that the worker did not list. */
export async function findMissing(
  db: Queryable,
  input: { connectionId: string; instanceIds: readonly string[]; listed: readonly string[] },
): Promise<string[]> {
  const rows = await db.query(missingFrom, [input.connectionId, input.instanceIds, input.listed]);
  return rows.map((row) => row.id);
}

/**
 * Handles the loss of a connection. Takes back the unclaimed assignments. For the other executions, the worker has some time to
 * connect again.
 */
export async function loseConnection(deps: ExecutionDeps, connectionId: string): Promise<void> {
  for (const assigned of await findAssigned(deps.db, connectionId)) await takeBack(deps, assigned, 'lost');
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
