/** Running programs of our own worker. A token, not a name, proves that a connection belongs to one. */
import { hash, randomBytes, randomUUIDv7 } from 'node:crypto';
import { heldPhases } from '../executions/transitions/phases.ts';
import type { Queryable, Statement } from '../store/database/database.ts';

/** Whose instances a token is looked up among: those of one worker name in one pool. */
export interface InstanceScope {
  readonly workerId: string;
  /** null: the hosted pool. */
  readonly teamId: string | null;
}

/** The token is random: its hash needs neither salt nor stretching. */
const hashToken = (token: string): Buffer => hash('sha256', token, 'buffer');

const readInstances: Statement = {
  name: 'read_worker_instances',
  text: `
    SELECT id FROM worker_instances
    WHERE token_hash = ANY($1::bytea[]) AND worker_id = $2 AND team_id IS NOT DISTINCT FROM $3::uuid`,
};

/** Returns the ids of the instances that these tokens prove. Unknown tokens, and those of another pool, prove none. */
export async function findInstances(
  tx: Queryable,
  { workerId, teamId }: InstanceScope,
  tokens: readonly string[],
): Promise<string[]> {
  if (tokens.length === 0) return [];
  const rows = await tx.query<{ id: string }>(readInstances, [tokens.map(hashToken), workerId, teamId]);
  return rows.map(({ id }) => id);
}

const insertInstance: Statement = {
  name: 'insert_worker_instance',
  text: 'INSERT INTO worker_instances (id, token_hash, worker_id, team_id) VALUES ($1, $2, $3, $4)',
};

/** Makes an instance and the token that proves it. Only the token's hash is stored. */
export async function newInstance(
  tx: Queryable,
  { workerId, teamId }: InstanceScope,
): Promise<{ id: string; token: string }> {
  const id = randomUUIDv7();
  const token = `ryw_${randomBytes(32).toString('base64url')}`;
  await tx.query(insertInstance, [id, hashToken(token), workerId, teamId]);
  return { id, token };
}

/** An instance without a connection that holds nothing has nothing to prove: it gets a new token on its next connection. */
const deleteUnused: Statement = {
  name: 'delete_unused_worker_instances',
  text: `
    DELETE FROM worker_instances i
    WHERE NOT EXISTS (SELECT FROM worker_connections c WHERE c.instance_id = i.id)
      AND NOT EXISTS (SELECT FROM executions e WHERE e.worker_instance = i.id AND e.phase IN ${heldPhases})`,
};

/** Deletes instances that are gone. */
export async function forgetUnusedInstances(db: Queryable): Promise<void> {
  await db.query(deleteUnused);
}
