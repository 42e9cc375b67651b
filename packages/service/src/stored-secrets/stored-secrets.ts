/** Sets, lists and deletes secrets. Values go in and never come out of this file. */
import { randomUUIDv7 } from 'node:crypto';
import { maxSecrets } from '@runyard/contract/limits';
import type { PutSecretRequest, Secret, SecretScope } from '@runyard/contract/secrets';
import type { RunActor } from '../access/actor.ts';
import type { Vault } from '../secrets/vault.ts';
import type { Queryable } from '../store/database/database.ts';
import {
  boolean,
  defineStatement,
  integer,
  nullable,
  type RowOf,
  text,
  texts,
  timestamp,
  uuid,
} from '../store/database/statement.ts';
import { purposeOfSecret } from './seal-purpose.ts';

/** Who asks. */
export interface SecretCaller {
  readonly teamId: string;
  readonly creator: RunActor;
}

const row = {
  id: uuid,
  name: text(),
  is_personal: boolean,
  agent_uids: texts,
  created_at: timestamp,
  updated_at: timestamp,
  last_used_at: nullable(timestamp),
};
const columns = 'id, name, owner_uid IS NOT NULL AS is_personal, agent_uids, created_at, updated_at, last_used_at';

/** $2: the person, or NULL. $3: the service account, or NULL. */
const readVisible = defineStatement({
  name: 'read_visible_secrets',
  text: `
    SELECT ${columns} FROM stored_secrets
    WHERE team_id = $1 AND ((owner_uid IS NULL AND ($3::text IS NULL OR $3 = ANY(agent_uids))) OR owner_uid = $2::text)
    ORDER BY name, owner_uid NULLS LAST`,
  row,
});

const findOne = defineStatement({
  name: 'find_secret_to_set',
  text: 'SELECT id FROM stored_secrets WHERE team_id = $1 AND owner_uid IS NOT DISTINCT FROM $2::text AND name = $3',
  row: { id: uuid },
});

const countOthers = defineStatement({
  name: 'count_secrets',
  text: 'SELECT count(*) AS count FROM stored_secrets WHERE team_id = $1 AND owner_uid IS NOT DISTINCT FROM $2::text',
  row: { count: integer },
});

const insert = defineStatement({
  name: 'insert_secret',
  text: `
    INSERT INTO stored_secrets (id, team_id, owner_uid, name, vault_key_id, sealed_value, agent_uids)
    VALUES ($1, $2, $3, $4, $5, $6, coalesce($7::text[], '{}')) RETURNING ${columns}`,
  row,
});

const update = defineStatement({
  name: 'update_secret',
  text: `
    UPDATE stored_secrets SET vault_key_id = $2, sealed_value = $3, agent_uids = coalesce($4::text[], agent_uids),
      updated_at = clock_timestamp()
    WHERE id = $1 RETURNING ${columns}`,
  row,
});

const remove = defineStatement({
  name: 'delete_secret',
  text: 'DELETE FROM stored_secrets WHERE team_id = $1 AND owner_uid IS NOT DISTINCT FROM $2::text AND name = $3 RETURNING id',
  row: { id: uuid },
});

const toSecret = (found: RowOf<typeof insert>): Secret => ({
  name: found.name,
  scope: found.is_personal ? 'personal' : 'team',
  ...(found.is_personal ? {} : { agents: found.agent_uids }),
  created_at: found.created_at,
  updated_at: found.updated_at,
  ...(found.last_used_at === null ? {} : { last_used_at: found.last_used_at }),
});

/** Returns the secrets that the caller may use in runs, by name; of two with one name the personal one first. */
export async function listSecrets(db: Queryable, { teamId, creator }: SecretCaller): Promise<Secret[]> {
  const isPerson = creator.kind === 'user';
  const rows = await db.query(readVisible, [teamId, isPerson ? creator.uid : null, isPerson ? null : creator.uid]);
  return rows.map(toSecret);
}

/**
 * Creates the secret or replaces its value. `too_many`: the team or the person has the largest number allowed. Creates of one owner
 * wait for each other, so of two at once the second sees the row of the first.
 */
export async function putSecret(
  tx: Queryable,
  vault: Vault,
  { teamId, creator }: SecretCaller,
  { name, value, scope, agents }: PutSecretRequest & { readonly name: string },
): Promise<Secret | 'too_many'> {
  const owner = scope === 'personal' ? creator.uid : null;
  await tx.query('SELECT pg_advisory_xact_lock(hashtextextended($1, 0))', [`secrets of ${owner ?? ''} in ${teamId}`]);
  const [known] = await tx.query(findOne, [teamId, owner, name]);
  if (known) {
    const sealed = vault.seal(purposeOfSecret(known.id), value);
    const [changed] = await tx.query(update, [known.id, vault.keyId, sealed, agents ?? null]);
    if (changed) return toSecret(changed);
  }
  const [others] = await tx.query(countOthers, [teamId, owner]);
  if ((others?.count ?? 0) >= maxSecrets) return 'too_many';
  const id = randomUUIDv7();
  const sealed = vault.seal(purposeOfSecret(id), value);
  const [made] = await tx.query(insert, [id, teamId, owner, name, vault.keyId, sealed, agents ?? null]);
  if (!made) throw new Error('the secret was not inserted');
  return toSecret(made);
}

/** Deletes a secret of the team, or a personal one of the caller. False: there is none. */
export async function deleteSecret(
  db: Queryable,
  { teamId, creator }: SecretCaller,
  name: string,
  scope: SecretScope,
): Promise<boolean> {
  return (await db.query(remove, [teamId, scope === 'personal' ? creator.uid : null, name])).length > 0;
}
