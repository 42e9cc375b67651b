/** Stores agent identities. Runs and agent keys of a team act as these identities. */

import { maxIdentities } from '@runyard/contract/limits';
import type {
  AgentIdentity,
  CreateAgentIdentityRequest,
  UpdateAgentIdentityRequest,
} from '@runyard/contract/team/identities';
import { isAtLeast } from '@runyard/contract/wire/access';
import type { Fault } from '../../../platform/fault.ts';
import type { Database, Queryable } from '../../../platform/store/database/database.ts';
import {
  boolean,
  defineStatement,
  json,
  nullable,
  type RowOf,
  text,
  texts,
  timestamp,
} from '../../../platform/store/database/statement.ts';
import { recordChange } from '../audit/record.ts';
import { keysChannel } from '../keys/key.ts';
import type { Principal } from '../keys/principal.ts';
import { teamHasRoom } from '../teams/has-room.ts';
import { newUid } from '../teams/uid.ts';
import {
  type CheckDefaults,
  configAfter,
  type DefaultFault,
  type Defaults,
  defaultsOf,
  given,
  givenText,
  type IdentityConfig,
  membersWithoutEffect,
  requestFaults,
  secretsOfIdentity,
  textOrNone,
} from './defaults.ts';

const columns =
  'uid, name, description, base_model, environment_id, skills, secrets, config, on_behalf_of_enabled, created_at, updated_at';
const identityRow = {
  uid: text(),
  name: text(),
  description: nullable(text()),
  base_model: nullable(text()),
  environment_id: nullable(text()),
  skills: texts,
  secrets: texts,
  config: json<IdentityConfig>(),
  on_behalf_of_enabled: boolean,
  created_at: timestamp,
  updated_at: timestamp,
};

const readAll = defineStatement({
  name: 'read_agent_identities',
  text: `SELECT ${columns} FROM agent_identities WHERE team_id = $1 ORDER BY created_at, uid`,
  row: identityRow,
});

const readOne = defineStatement({
  name: 'read_agent_identity',
  text: `SELECT ${columns} FROM agent_identities WHERE team_id = $1 AND uid = $2`,
  row: identityRow,
});

const lockOne = defineStatement({
  name: 'lock_agent_identity',
  text: `SELECT ${columns} FROM agent_identities WHERE team_id = $1 AND uid = $2 FOR UPDATE`,
  row: identityRow,
});

const insert = defineStatement({
  name: 'insert_agent_identity',
  text: `
    INSERT INTO agent_identities (uid, team_id, name, description, base_model, environment_id, skills, secrets, on_behalf_of_enabled, editor_kind,
      editor_uid, config)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12) RETURNING ${columns}`,
  row: identityRow,
});

const update = defineStatement({
  name: 'update_agent_identity',
  text: `
    UPDATE agent_identities SET name = $3, description = $4, base_model = $5, environment_id = $6, skills = $7, secrets = $8,
      on_behalf_of_enabled = $9, editor_kind = $10, editor_uid = $11, config = $12, updated_at = clock_timestamp()
    WHERE team_id = $1 AND uid = $2 RETURNING ${columns}`,
  row: identityRow,
});

const remove = defineStatement({
  name: 'delete_agent_identity',
  text: 'DELETE FROM agent_identities WHERE team_id = $1 AND uid = $2 RETURNING name',
  row: { name: text() },
});

/**
 * This statement runs after the identity was locked or deleted, so that it sees all keys that were created before the lock or the delete.
 */
const removeKeys = defineStatement({
  name: 'delete_keys_of_agent_identity',
  text: `
    WITH gone AS (DELETE FROM api_keys WHERE team_id = $1 AND agent_uid = $2 AND kind = 'agent' RETURNING id)
    SELECT count(*)::integer AS keys, pg_notify('${keysChannel}', '')::text AS notified FROM gone`,
  row: {},
});

type IdentityRow = RowOf<typeof readOne>;
/** Returns the agents of a factory of the team, sorted by name, or only the agent with this UID; an empty list if there is none. */
export type ListAgentsOfFactory = (
  db: Queryable,
  teamId: string,
  wanted: { readonly factoryUid: string } | { readonly uid: string },
  check: CheckDefaults,
) => Promise<AgentIdentity[]>;

async function toIdentity(
  db: Queryable,
  teamId: string,
  { description, base_model, environment_id, skills, secrets, config, ...row }: IdentityRow,
  check: CheckDefaults,
): Promise<AgentIdentity> {
  return {
    ...row,
    ...(description === null ? {} : { description }),
    ...(base_model === null ? {} : { base_model }),
    ...(environment_id === null ? {} : { environment_id }),
    skills,
    secrets: secretsOfIdentity({ secrets, config }),
    ...defaultsOf(config),
    ...membersWithoutEffect,
    available: (await check(db, teamId, { base_model, environment_id, skills, secrets, config })).length === 0,
  };
}

/** Returns the members of an identity that the audit log shows. */
const stateOf = ({ uid: _uid, created_at: _created, updated_at: _updated, ...state }: IdentityRow) => state;

/** Returns the identities of a team, oldest first. */
export async function listIdentities(db: Queryable, teamId: string, check: CheckDefaults): Promise<AgentIdentity[]> {
  const rows = await db.query(readAll, [teamId]);
  const identities: AgentIdentity[] = [];
  for (const row of rows) identities.push(await toIdentity(db, teamId, row, check));
  return identities;
}

/** Returns an identity; null if the team has none with this uid. */
export async function readIdentity(
  db: Queryable,
  teamId: string,
  uid: string,
  check: CheckDefaults,
): Promise<AgentIdentity | null> {
  const [row] = await db.query(readOne, [teamId, uid]);
  return row ? await toIdentity(db, teamId, row, check) : null;
}

/** Reasons why an identity is not stored: `invalid` 400 or 403, `owner_needed` 403, `too_many` 409, `not_found` 404. */
export type IdentityRefusal =
  | { readonly kind: 'invalid'; readonly faults: readonly DefaultFault[] }
  | { readonly kind: 'owner_needed' }
  | { readonly kind: 'too_many' }
  | { readonly kind: 'not_found' };

export type IdentityOutcome = { readonly kind: 'written'; readonly identity: AgentIdentity } | IdentityRefusal;

/**
 * Creates an identity. Only owners may create an identity that acts for users, because its keys can use personal secrets and credentials.
 */
export async function createIdentity(
  tx: Queryable,
  principal: Principal,
  request: CreateAgentIdentityRequest,
  check: CheckDefaults,
): Promise<IdentityOutcome> {
  const { teamId, role, creator } = principal;
  if (request.on_behalf_of_enabled && !isAtLeast(role, 'owner')) return { kind: 'owner_needed' };
  const defaults: Defaults = {
    base_model: textOrNone(request.base_model),
    environment_id: textOrNone(request.environment_id),
    skills: request.skills,
    secrets: request.secrets.map(({ name }) => name),
    config: configAfter(request, {}),
  };
  const faults = [...requestFaults(request), ...(await check(tx, teamId, defaults))];
  if (faults.length > 0) return { kind: 'invalid', faults };
  if (!(await teamHasRoom(tx, principal, 'agent_identities', maxIdentities))) return { kind: 'too_many' };
  const [row] = await tx.query(insert, [
    newUid(),
    teamId,
    request.name,
    textOrNone(request.description),
    defaults.base_model,
    defaults.environment_id,
    defaults.skills,
    defaults.secrets,
    request.on_behalf_of_enabled,
    creator.kind,
    creator.uid,
    JSON.stringify(defaults.config),
  ]);
  if (!row) throw new Error('the identity was not inserted');
  const subject = { type: 'agent_identity', uid: row.uid, name: row.name };
  await recordChange(tx, principal, { action: 'agent_identity.create', subject, after: stateOf(row) });
  return { kind: 'written', identity: await toIdentity(tx, teamId, row, check) };
}

/** Changes the members that the request contains. If the request turns on `on_behalf_of_enabled`, the keys of the identity end. */
export async function updateIdentity(
  db: Database,
  principal: Principal,
  uid: string,
  request: UpdateAgentIdentityRequest,
  check: CheckDefaults,
): Promise<IdentityOutcome> {
  const { teamId, role, creator } = principal;
  return await db.transaction(async (tx): Promise<IdentityOutcome> => {
    const [before] = await tx.query(lockOne, [teamId, uid]);
    if (!before) return { kind: 'not_found' };
    const onBehalfOfEnabled = given(request.on_behalf_of_enabled, before.on_behalf_of_enabled);
    if (onBehalfOfEnabled && !before.on_behalf_of_enabled && !isAtLeast(role, 'owner')) return { kind: 'owner_needed' };
    const defaults: Defaults = {
      base_model: givenText(request.base_model, before.base_model),
      environment_id: givenText(request.environment_id, before.environment_id),
      skills: given(request.skills, before.skills),
      secrets: request.secrets?.map(({ name }) => name) ?? before.secrets,
      config: configAfter(request, before.config),
    };
    // Check the defaults only if the request changes them, so that a stored default that is not usable any more does not prevent other
    // changes.
    const isGiven = ({ path }: Fault) => {
      const [member = ''] = path.split('.');
      return (Reflect.get(request, member) ?? (member === 'harness' ? request.base_harness : undefined)) !== undefined;
    };
    const faults = [...requestFaults(request), ...(await check(tx, teamId, defaults)).filter(isGiven)];
    if (faults.length > 0) return { kind: 'invalid', faults };
    const [row] = await tx.query(update, [
      teamId,
      uid,
      given(request.name, before.name),
      givenText(request.description, before.description),
      defaults.base_model,
      defaults.environment_id,
      defaults.skills,
      defaults.secrets,
      onBehalfOfEnabled,
      creator.kind,
      creator.uid,
      JSON.stringify(defaults.config),
    ]);
    if (!row) throw new Error('the identity was not updated');
    // End the present keys, because administrators may have created them, and only owners may create keys that act for users.
    if (onBehalfOfEnabled && !before.on_behalf_of_enabled) await tx.query(removeKeys, [teamId, uid]);
    await recordChange(tx, principal, {
      action: 'agent_identity.update',
      subject: { type: 'agent_identity', uid, name: row.name },
      before: stateOf(before),
      after: stateOf(row),
    });
    return { kind: 'written', identity: await toIdentity(tx, teamId, row, check) };
  });
}

/**
 * Deletes an identity and its keys, which stop working in all processes. Returns false if the team has no such
 * identity.
 */
export async function deleteIdentity(db: Database, principal: Principal, uid: string): Promise<boolean> {
  const { teamId } = principal;
  return await db.transaction(async (tx) => {
    const [gone] = await tx.query(remove, [teamId, uid]);
    if (!gone) return false;
    await tx.query(removeKeys, [teamId, uid]);
    await recordChange(tx, principal, {
      action: 'agent_identity.delete',
      subject: { type: 'agent_identity', uid, name: gone.name },
      before: { name: gone.name },
      endsAccess: true,
    });
    return true;
  });
}
