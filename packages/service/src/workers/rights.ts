/** Checks what a worker's connection may act on. A name proves nothing: team, pool and key are compared for each action. */
import { isValidKey } from '../access/keys/valid-key.ts';
import type { Phase } from '../executions/transitions/transition.ts';
import type { Queryable, Statement } from '../store/database/database.ts';

/** SQL: the key of the connection `c` is valid and has the right to serve the connection's team, or the hosted pool. */
export const hasKey = (c: string): string => `
  EXISTS (SELECT FROM api_keys k WHERE k.id = ${c}.key_id AND ${isValidKey('k')}
    AND CASE WHEN ${c}.team_id IS NULL THEN k.is_operator ELSE k.team_id = ${c}.team_id END)`;

/** SQL: the execution `e` is of the team and the pool that the connection `c` serves. */
export const isInPool = (e: string, c: string): string => `
  CASE WHEN ${c}.team_id IS NULL THEN ${e}.pool = '' ELSE ${e}.team_id = ${c}.team_id AND ${e}.pool = ${c}.worker_id END`;

/**
 * The record has no row of the connection, because another process took this one for dead, or its key has ended. The worker
 * has to connect again.
 */
export class ConnectionEnded extends Error {
  override readonly name = 'ConnectionEnded';
}

const lockConnection: Statement = {
  name: 'lock_worker_connection',
  text: `SELECT ${hasKey('c')} AS "hasKey" FROM worker_connections c WHERE c.id = $1 FOR UPDATE OF c`,
};

/** Locks the connection's row. Throws `ConnectionEnded`. */
export async function lockOwnConnection(tx: Queryable, connectionId: string): Promise<void> {
  const [row] = await tx.query<{ hasKey: boolean }>(lockConnection, [connectionId]);
  if (!row) throw new ConnectionEnded('another service process took this one for dead');
  if (!row.hasKey) throw new ConnectionEnded('the key of the connection was deleted or has expired');
}

const lockRun: Statement = {
  name: 'lock_run_of_worker_message',
  text: 'SELECT FROM executions e JOIN runs r ON r.id = e.run_id WHERE e.id = $1 AND r.id = $2 FOR UPDATE OF r',
};

/** A second statement, so that it sees what the one before waited for. */
const readServed: Statement = {
  name: 'read_served_execution',
  text: `
    SELECT e.phase, c.id IS NOT NULL AS "isKnown", (${isInPool('e', 'c')}) AND (${hasKey('c')}) AS "mayServe"
    FROM executions e LEFT JOIN worker_connections c ON c.id = e.connection_id WHERE e.id = $1 AND e.connection_id = $2`,
};

/**
 * Locks the run of an execution, and returns the execution's phase where the connection may act on it now. Null: the
 * execution belongs to another connection, team or pool, or the connection's key has ended. Throws `ConnectionEnded` where
 * the execution is the connection's, but the record has no row of the connection.
 */
export async function lockServed(
  tx: Queryable,
  execution: { runId: string; executionId: string },
  connectionId: string,
): Promise<Phase | null> {
  const locked = await tx.query(lockRun, [execution.executionId, execution.runId]);
  if (locked.length === 0) return null;
  const [row] = await tx.query<{ phase: Phase; isKnown: boolean; mayServe: boolean }>(readServed, [
    execution.executionId,
    connectionId,
  ]);
  if (row && !row.isKnown) throw new ConnectionEnded('another service process took this one for dead');
  return row?.mayServe ? row.phase : null;
}
