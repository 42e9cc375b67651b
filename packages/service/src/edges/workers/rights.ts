/** Checks which executions a worker's connection may act on, for each of its messages. */
import type { Queryable } from '../../platform/store/database/database.ts';
import { boolean, defineStatement, nullable, text } from '../../platform/store/database/statement.ts';
import type { Phase } from '../../runs/executions/phases.ts';
import { hasKey, isInPool } from '../../runs/executions/queue/may-take.ts';
import type { KeyOfWorker } from '../../team/access/keys/directory.ts';

/**
 * Thrown if the worker must connect again. Either another process counted this process as dead and deleted the row of the connection, or
 * the key has ended, or the person of the key may no longer run workers.
 */
export class ConnectionEnded extends Error {
  override readonly name = 'ConnectionEnded';
}

const lockConnection = defineStatement({
  name: 'lock_worker_connection',
  text: `SELECT ${hasKey('c')} AS "hasKey" FROM worker_connections c WHERE c.id = $1 FOR UPDATE OF c`,
  row: { hasKey: boolean },
});

/** Locks the connection's row. Throws `ConnectionEnded`. */
export async function lockOwnConnection(tx: Queryable, connectionId: string): Promise<void> {
  const [row] = await tx.query(lockConnection, [connectionId]);
  if (!row) throw new ConnectionEnded('another service process counted this process as dead');
  if (!row.hasKey)
    throw new ConnectionEnded('the key of the connection has ended, or its person may not run workers any more');
}

/**
 * Locks the run, then the execution. PostgreSQL reads both rows again after a wait for their locks, so the phase and the connection of the
 * execution are the present ones.
 */
const lockExecution = defineStatement({
  name: 'lock_served_execution',
  text: `
    SELECT e.phase, c.id IS NOT NULL AS "isKnown", (${isInPool('e', 'c')}) AND (${hasKey('c')}) AS "mayServe"
    FROM runs r JOIN executions e ON e.run_id = r.id LEFT JOIN worker_connections c ON c.id = $3
    WHERE r.id = $1 AND e.id = $2 AND e.connection_id = $3 FOR NO KEY UPDATE OF r, e`,
  row: { phase: text<Phase>(), isKnown: boolean, mayServe: nullable(boolean) },
});

/**
 * Locks a run and its execution, and returns the execution's phase. Returns null if the connection may not act on the execution: it belongs
 * to another connection, team or pool, or the connection's key is not valid any more. Throws `ConnectionEnded` if the execution belongs to
 * the connection, but the row of the connection was deleted.
 */
export async function lockServed(
  tx: Queryable,
  execution: { runId: string; executionId: string },
  connectionId: string,
): Promise<Phase | null> {
  const [row] = await tx.query(lockExecution, [execution.runId, execution.executionId, connectionId]);
  if (row && !row.isKnown) throw new ConnectionEnded('another service process counted this process as dead');
  return row?.mayServe ? row.phase : null;
}

/** The owner of the key that opened a worker's connection. */
export type WorkerPrincipal = Pick<KeyOfWorker, 'keyId' | 'teamId' | 'serves' | 'creator'>;

/** Worker names with this prefix are reserved for the operator: such workers serve the hosted pool of all teams. */
export const operatorNames = 'runyard';

/**
 * Returns the team whose runs a worker with this name serves, or null for the hosted pool. `not_allowed`: the key may not serve this team.
 */
export function poolTeamOf({ serves, teamId }: WorkerPrincipal, workerId: string): string | null | 'not_allowed' {
  if (!workerId.startsWith(operatorNames)) return serves === 'hosted' ? 'not_allowed' : teamId;
  return serves === 'team' ? 'not_allowed' : null;
}
