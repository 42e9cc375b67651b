/** When a worker connects again, assigns the executions that it still runs to its new connection. */
import type { Queryable } from '../../../platform/store/database/database.ts';
import { defineStatement, uuid } from '../../../platform/store/database/statement.ts';
import { assignedPhases, sandboxPhases } from '../phases.ts';
import { hasKey, isInPool } from '../queue/may-take.ts';
import { fromNow } from '../time.ts';

interface AdoptedExecution {
  readonly id: string;
  readonly runId: string;
}

const nameInstanceOf = defineStatement({
  name: 'name_instance_of_executions',
  text: `
    UPDATE executions SET worker_instance = $2
    WHERE connection_id = $1 AND worker_instance IS NULL AND is_live AND phase IN ${assignedPhases}`,
  row: {},
});

/** Records the worker's instance on the executions that were assigned to the connection before the worker's hello message arrived. */
export async function nameInstance(db: Queryable, connectionId: string, instanceId: string): Promise<void> {
  await db.query(nameInstanceOf, [connectionId, instanceId]);
}

const adopt = defineStatement({
  name: 'adopt_executions',
  text: `
    UPDATE executions e SET connection_id = $1, lease_until = ${fromNow('$3')}
    FROM worker_connections c
    WHERE e.id = ANY($2::uuid[]) AND e.worker_instance = $4 AND e.phase IN ${sandboxPhases}
      AND c.id = $1 AND c.worker_id = e.worker_id AND ${isInPool('e', 'c')} AND ${hasKey('c')}
    RETURNING e.id, e.run_id AS "runId"`,
  row: { id: uuid, runId: uuid },
});

/**
 * Assigns listed executions to the connection if they belong to the connection's team and pool and to the worker's instance. Returns the
 * assigned executions. The worker has no right to the other listed executions.
 */
export async function adoptExecutions(
  db: Queryable,
  input: { connectionId: string; instanceId: string; executionIds: readonly string[]; leaseSeconds: number },
): Promise<AdoptedExecution[]> {
  return await db.query(adopt, [input.connectionId, input.executionIds, input.leaseSeconds, input.instanceId]);
}

const adoptOfName = defineStatement({
  name: 'adopt_executions_of_public_worker',
  text: `
    UPDATE executions e SET connection_id = $1, lease_until = CASE WHEN e.phase = 'stopping' THEN e.lease_until ELSE ${fromNow('$2')} END
    FROM worker_connections c
    WHERE e.worker_instance IS NULL AND e.is_live AND e.phase IN ${sandboxPhases}
      AND c.id = $1 AND c.worker_id = e.worker_id AND ${isInPool('e', 'c')} AND ${hasKey('c')}
      AND NOT EXISTS (SELECT FROM worker_connections o WHERE o.id = e.connection_id)
    RETURNING e.id, e.run_id AS "runId"`,
  row: { id: uuid, runId: uuid },
});

/**
 * Assigns executions of lost connections to the connection of a public worker. An execution is assigned if its worker name, team and pool
 * are those of the connection, and if it has no instance. Executions that are not stopping also get a new lease. Nothing proves that the
 * worker still runs these executions. Returns the assigned executions.
 */
export async function adoptOfPublicWorker(
  db: Queryable,
  input: { connectionId: string; leaseSeconds: number },
): Promise<AdoptedExecution[]> {
  return await db.query(adoptOfName, [input.connectionId, input.leaseSeconds]);
}
