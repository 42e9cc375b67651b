/** Sets, lists and deletes secrets. No function of this file returns a secret's value. */
import { randomUUIDv7 } from 'node:crypto';
import { maxSecrets } from '@runyard/contract/limits';
import type { PutSecretRequest, Secret, SecretScope } from '@runyard/contract/secrets/secrets';
import type { Vault } from '../../platform/secrets/vault.ts';
import type { Queryable } from '../../platform/store/database/database.ts';
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
} from '../../platform/store/database/statement.ts';
import type { RunActor } from '../access/actor.ts';
import { type Author, recordChange } from '../access/audit/record.ts';
import type { Principal } from '../access/keys/principal.ts';
import { ownerOf } from '../access/ownership.ts';
import { purposeOfSecret } from './sealed-rows.ts';

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
    WHERE team_id = $1 AND ((owner_uid IS NULL AND ($3::text IS NULL OR $3 = ANY(agent_uids) OR EXISTS (
        SELECT FROM agent_identities i WHERE i.team_id = stored_secrets.team_id AND i.uid = $3 AND name = ANY(i.secrets))))
      OR owner_uid = $2::text)
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
  text: `DELETE FROM stored_secrets WHERE team_id = $1 AND owner_uid IS NOT DISTINCT FROM $2::text AND name = $3 RETURNING ${columns}`,
  row,
});

const toSecret = (found: RowOf<typeof insert>): Secret => ({
  name: found.name,
  scope: found.is_personal ? 'personal' : 'team',
  ...(found.is_personal ? {} : { agents: found.agent_uids }),
  created_at: found.created_at,
  updated_at: found.updated_at,
  ...(found.last_used_at === null ? {} : { last_used_at: found.last_used_at }),
});

/**
 * Returns the secrets that the caller may use in runs, sorted by name. If two secrets have the same name, the personal secret comes first.
 */
export async function listSecrets(db: Queryable, { teamId, creator }: SecretCaller): Promise<Secret[]> {
  const isPerson = creator.kind === 'user';
  const rows = await db.query(readVisible, [teamId, isPerson ? creator.uid : null, isPerson ? null : creator.uid]);
  return rows.map(toSecret);
}

/**
 * Creates the secret or replaces its value. `too_many`: the team or the person already has the maximum number of secrets. If two secrets
 * of one owner are created at the same time, the later call waits and then sees the row of the earlier call.
 */
export async function putSecret(
  tx: Queryable,
  vault: Vault,
  principal: Principal,
  { name, value, scope, agents }: PutSecretRequest & { readonly name: string },
): Promise<Secret | 'too_many'> {
  const { teamId } = principal;
  const owner = ownerUid(principal, scope);
  await tx.query('SELECT pg_advisory_xact_lock(hashtextextended($1, 0))', [`secrets of ${owner ?? ''} in ${teamId}`]);
  const [known] = await tx.query(findOne, [teamId, owner, name]);
  if (known) {
    const sealed = vault.seal(purposeOfSecret(known.id), value);
    const [changed] = await tx.query(update, [known.id, vault.keyId, sealed, agents ?? null]);
    if (changed) {
      await record(tx, principal, 'secret.update', changed);
      return toSecret(changed);
    }
  }
  const [others] = await tx.query(countOthers, [teamId, owner]);
  if ((others?.count ?? 0) >= maxSecrets) return 'too_many';
  const id = randomUUIDv7();
  const sealed = vault.seal(purposeOfSecret(id), value);
  const [made] = await tx.query(insert, [id, teamId, owner, name, vault.keyId, sealed, agents ?? null]);
  if (!made) throw new Error('the secret was not inserted');
  await record(tx, principal, 'secret.create', made);
  return toSecret(made);
}

/** Deletes a secret of the team, or a personal secret of the caller. Returns false if there is no such secret. */
export async function deleteSecret(
  tx: Queryable,
  principal: Principal,
  name: string,
  scope: SecretScope,
): Promise<boolean> {
  const [gone] = await tx.query(remove, [principal.teamId, ownerUid(principal, scope), name]);
  if (!gone) return false;
  await record(tx, principal, 'secret.delete', gone);
  return true;
}

/** Returns the person who owns the secret; null if the secret belongs to the team. */
function ownerUid(principal: Principal, scope: SecretScope): string | null {
  const owner = ownerOf(principal, scope);
  if (owner === 'forbidden') throw new Error('the route admits people only');
  return owner.userUid ?? null;
}

/** Writes the change of a secret to the audit log, without the value. */
async function record(
  tx: Queryable,
  by: Author,
  action: 'secret.create' | 'secret.update' | 'secret.delete',
  changed: RowOf<typeof insert>,
): Promise<void> {
  const { scope, agents } = toSecret(changed);
  const state = { scope, ...(agents ? { agents } : {}) };
  const isEnd = action === 'secret.delete';
  const subject = { type: 'secret', uid: changed.id, name: changed.name };
  await recordChange(tx, by, { action, subject, ...(isEnd ? { before: state, endsAccess: true } : { after: state }) });
}

const readMissing = defineStatement({
  name: 'read_names_without_secret_of_team',
  text: `
    SELECT w.name FROM unnest($2::text[]) AS w (name)
    WHERE NOT EXISTS (
      SELECT FROM stored_secrets s WHERE s.team_id = $1 AND s.owner_uid IS NULL AND s.name = w.name)`,
  row: { name: text() },
});

/** Returns those names for which the team has no secret. Personal secrets do not count. */
export async function findMissingSecrets(db: Queryable, teamId: string, names: readonly string[]): Promise<string[]> {
  if (names.length === 0) return [];
  return (await db.query(readMissing, [teamId, names])).map(({ name }) => name);
}
