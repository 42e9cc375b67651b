/** An instance is a running program of our own worker. A token, and not the worker's name, proves that a connection belongs to an instance. */
import { hash, randomBytes, randomUUIDv7 } from 'node:crypto';
import type { Queryable } from '../../platform/store/database/database.ts';
import { defineStatement, text } from '../../platform/store/database/statement.ts';
import { sandboxPhases } from '../../runs/executions/phases.ts';

/** A worker name in a pool. A token proves an instance only within its name and pool. */
export interface InstanceScope {
  readonly workerId: string;
  /** null means the hosted pool. */
  readonly teamId: string | null;
}

/** The hash needs neither salt nor stretching, because the token is random. */
const hashToken = (token: string): Buffer => hash('sha256', token, 'buffer');

const readInstances = defineStatement({
  name: 'read_worker_instances',
  text: `
    SELECT id FROM worker_instances
    WHERE token_hash = ANY($1::bytea[]) AND worker_id = $2 AND team_id IS NOT DISTINCT FROM $3::uuid`,
  row: { id: text() },
});

/**
 * Returns the ids of the instances that the tokens prove. An unknown token, or a token of another pool, proves no
 * instance.
 */
export async function findInstances(
  tx: Queryable,
  { workerId, teamId }: InstanceScope,
  tokens: readonly string[],
): Promise<string[]> {
  if (tokens.length === 0) return [];
  const rows = await tx.query(readInstances, [tokens.map(hashToken), workerId, teamId]);
  return rows.map(({ id }) => id);
}

const insertInstance = defineStatement({
  name: 'insert_worker_instance',
  text: 'INSERT INTO worker_instances (id, token_hash, worker_id, team_id) VALUES ($1, $2, $3, $4)',
  row: {},
});

/** Creates an instance and the token that proves it. Only the token's hash is stored. */
export async function newInstance(
  tx: Queryable,
  { workerId, teamId }: InstanceScope,
): Promise<{ id: string; token: string }> {
  const id = randomUUIDv7();
  const token = `ryw_${randomBytes(32).toString('base64url')}`;
  await tx.query(insertInstance, [id, hashToken(token), workerId, teamId]);
  return { id, token };
}

/** An instance without connections and executions is not needed, because the worker gets a new token when it connects again. */
const deleteUnused = defineStatement({
  name: 'delete_unused_worker_instances',
  text: `
    DELETE FROM worker_instances i
    WHERE NOT EXISTS (SELECT FROM worker_connections c WHERE c.instance_id = i.id)
      AND NOT EXISTS (SELECT FROM executions e WHERE e.worker_instance = i.id AND e.is_live AND e.phase IN ${sandboxPhases})`,
  row: {},
});

/** Deletes the instances that have no connection and hold no execution. */
export async function forgetUnusedInstances(db: Queryable): Promise<void> {
  await db.query(deleteUnused);
}
