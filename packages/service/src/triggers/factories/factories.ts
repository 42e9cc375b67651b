/** Creates, reads, changes and deletes the factories of teams. */
import type { CreateFactoryRequest, Factory, ListFactoriesQuery } from '@runyard/contract/factories/factories';
import { maxFactories } from '@runyard/contract/limits';
import type { AmbientAgentConfig } from '@runyard/contract/runs/config';
import type { PageInfo } from '@runyard/contract/wire/profiles';
import { type CursorSigner, listIdentity, readCursor, writeCursor } from '../../platform/store/cursor.ts';
import type { Database, Queryable } from '../../platform/store/database/database.ts';
import {
  boolean,
  defineStatement,
  integer,
  json,
  nullable,
  type RowOf,
  text,
  timestamp,
} from '../../platform/store/database/statement.ts';
import { type Author, recordChange } from '../../team/access/audit/record.ts';
import { lockRows, teamHasRoom } from '../../team/access/teams/has-room.ts';
import { newUid } from '../../team/access/teams/uid.ts';
import { listFactoryAgents, newForeman, replaceFactoryAgents } from './agents.ts';

const lockWebhooks = defineStatement({
  name: 'lock_webhooks_of_factory',
  text: 'SELECT uid FROM webhooks WHERE factory_uid = $1 ORDER BY uid FOR UPDATE',
  row: { uid: text() },
});

const lockAutomations = defineStatement({
  name: 'lock_automations_of_factory',
  text: 'SELECT uid FROM automations WHERE factory_uid = $1 ORDER BY uid FOR UPDATE',
  row: { uid: text() },
});

/**
 * Locks the webhooks and automations of a factory. The caller has locked the factory. Call this before the first of several changes.
 * Deliveries that have begun end before this function returns, and later deliveries wait. All transactions take their locks in one
 * order: the factory, webhooks by UID, automations by UID, schedules, and last the count of audit log entries. A delivery does not
 * lock the factory; it locks its webhook and then the automations that read the webhook.
 */
export async function lockPartsOfFactory(tx: Queryable, factoryUid: string): Promise<void> {
  await tx.query(lockWebhooks, [factoryUid]);
  await tx.query(lockAutomations, [factoryUid]);
}

const row = {
  uid: text(),
  name: text(),
  description: nullable(text()),
  alias: nullable(text()),
  repositories: json<{ owner: string; repo: string }[]>(),
  agent_defaults: json<AmbientAgentConfig>(),
  integrations: nullable(json<Factory['integrations']>()),
  credential_strategy: nullable(text<Factory['credential_strategy']>()),
  created_at: timestamp,
  updated_at: timestamp,
};

const columns = Object.keys(row).join(', ');

/** $2: a part of the name or the alias, or NULL. $3, $4: the page begins after this name and UID. */
const readPage = defineStatement({
  name: 'read_factories_of_team',
  text: `
    SELECT ${columns} FROM factories
    WHERE team_id = $1 AND (name COLLATE "C", uid) > ($3 COLLATE "C", $4)
      AND ($2::text IS NULL OR position(lower($2) IN lower(name)) > 0 OR position(lower($2) IN lower(coalesce(alias, ''))) > 0)
    ORDER BY name COLLATE "C", uid LIMIT $5`,
  row,
});

const readOne = defineStatement({
  name: 'read_factory',
  text: `SELECT ${columns} FROM factories WHERE team_id = $1 AND uid = $2`,
  row,
});

const readNames = defineStatement({
  name: 'read_names_of_factories',
  text: 'SELECT uid, name FROM factories WHERE team_id = $1 AND uid = ANY($2::text[])',
  row: { uid: text(), name: text() },
});

const lockOne = defineStatement({
  name: 'lock_factory',
  text: 'SELECT uid FROM factories WHERE team_id = $1 AND uid = $2 FOR UPDATE',
  row: { uid: text() },
});

const keepOne = defineStatement({
  name: 'keep_factory',
  text: 'SELECT uid FROM factories WHERE team_id = $1 AND uid = $2 FOR KEY SHARE',
  row: { uid: text() },
});

const readIsAliasTaken = defineStatement({
  name: 'read_whether_factory_alias_is_taken',
  text: 'SELECT EXISTS (SELECT FROM factories WHERE team_id = $1 AND alias = $2) AS is_taken',
  row: { is_taken: boolean },
});

const insert = defineStatement({
  name: 'insert_factory',
  text: `
    INSERT INTO factories (uid, team_id, name, description, alias, repositories, agent_defaults, creator_uid)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8) RETURNING ${columns}`,
  row,
});

const define = defineStatement({
  name: 'define_factory',
  text: `
    UPDATE factories SET name = $3, description = $4, alias = $5, repositories = $6, agent_defaults = $7,
      integrations = $8, credential_strategy = $9, updated_at = clock_timestamp()
    WHERE team_id = $1 AND uid = $2 RETURNING alias`,
  row: { alias: nullable(text()) },
});

const readAliasOwner = defineStatement({
  name: 'read_factory_of_alias',
  text: 'SELECT uid FROM factories WHERE team_id = $1 AND alias = $2',
  row: { uid: text() },
});

/** The foreign key also deletes the webhooks of the factory. For each of them, a trigger notifies the processes that accept deliveries. */
const remove = defineStatement({
  name: 'delete_factory',
  text: 'DELETE FROM factories WHERE team_id = $1 AND uid = $2 RETURNING name',
  row: { name: text() },
});

/** Returns the names of factories of the team, by the UIDs of the factories. */
export async function readFactoryNames(
  db: Queryable,
  teamId: string,
  uids: readonly string[],
): Promise<ReadonlyMap<string, string>> {
  const rows = uids.length === 0 ? [] : await db.query(readNames, [teamId, uids]);
  return new Map(rows.map(({ uid, name }) => [uid, name]));
}

/** A factory as it is stored. `agents`: absent in lists. */
export interface StoredFactory
  extends Pick<
    Factory,
    'uid' | 'name' | 'description' | 'alias' | 'repositories' | 'integrations' | 'created_at' | 'updated_at' | 'agents'
  > {
  readonly agent_defaults: AmbientAgentConfig;
  readonly credential_strategy: Factory['credential_strategy'];
}

/** The members of a factory that only its definition sets. Null: the definition does not declare the member. */
export interface DeclaredMembers {
  readonly integrations: Factory['integrations'];
  readonly credential_strategy: Factory['credential_strategy'] | null;
}

const toFactory = (found: RowOf<typeof readOne>): StoredFactory => ({
  uid: found.uid,
  name: found.name,
  description: found.description,
  alias: found.alias,
  repositories: found.repositories,
  agent_defaults: found.agent_defaults,
  integrations: found.integrations,
  credential_strategy: found.credential_strategy ?? 'EXECUTOR',
  created_at: found.created_at,
  updated_at: found.updated_at,
});

/** Returns one page of the factories of the team, sorted by name. Returns null if the cursor was made for another list. */
export async function listFactories(
  db: Queryable,
  signer: CursorSigner,
  teamId: string,
  query: ListFactoriesQuery,
): Promise<{ readonly factories: StoredFactory[]; readonly page_info: PageInfo } | null> {
  const identity = listIdentity(['factories', teamId, query.search ?? null]);
  let after = { value: '', id: '' };
  if (query.cursor !== undefined) {
    const read = readCursor(signer, identity, query.cursor);
    if (!read.ok) return null;
    after = { value: read.position.value ?? '', id: read.position.id };
  }
  const rows = await db.query(readPage, [teamId, query.search ?? null, after.value, after.id, query.limit + 1]);
  const page = rows.slice(0, query.limit);
  const last = page.at(-1);
  const hasNext = rows.length > page.length && last !== undefined;
  return {
    factories: page.map(toFactory),
    page_info: {
      has_next_page: hasNext,
      ...(hasNext ? { next_cursor: writeCursor(signer, identity, { value: last.name, id: last.uid }) } : {}),
    },
  };
}

/** Returns a factory; null if the team has no factory with this UID. */
export async function readFactory(db: Queryable, teamId: string, uid: string): Promise<StoredFactory | null> {
  const [found] = await db.query(readOne, [teamId, uid]);
  return found ? { ...toFactory(found), agents: await listFactoryAgents(db, uid) } : null;
}

/**
 * Locks a factory until the transaction ends, so that no other transaction adds parts to it or removes parts. Returns false if the team has no such
 * factory.
 */
export async function lockFactory(tx: Queryable, teamId: string, uid: string): Promise<boolean> {
  return (await tx.query(lockOne, [teamId, uid])).length > 0;
}

/** Prevents the deletion of a factory until the transaction ends. Returns false if the team has no such factory. */
export async function keepFactory(tx: Queryable, teamId: string, uid: string): Promise<boolean> {
  return (await tx.query(keepOne, [teamId, uid])).length > 0;
}

const revise = defineStatement({
  name: 'revise_definition_of_factory',
  text: 'UPDATE factories f SET revision = revise_definition(f, $2, $3) WHERE f.uid = $1 RETURNING f.revision',
  row: { revision: integer },
});

/**
 * Writes a revision of the defaults, agents and skills that runs get from a factory. Writes no revision if these contents are
 * unchanged. The caller has locked the factory.
 */
export async function reviseDefinition(
  tx: Queryable,
  factoryUid: string,
  { creator }: Pick<Author, 'creator'>,
): Promise<void> {
  await tx.query(revise, [factoryUid, creator.kind, creator.uid]);
}

/**
 * Creates a factory with a foreman. `too_many`: the team has the largest number allowed. `taken`: another factory of the team has this
 * alias.
 */
export async function createFactory(
  tx: Queryable,
  by: Author,
  request: CreateFactoryRequest,
): Promise<StoredFactory | 'too_many' | 'taken'> {
  const { teamId } = by;
  // `teamHasRoom` locks the number of factories of the team. So no other transaction can take the alias before this transaction ends.
  if (!(await teamHasRoom(tx, by, 'factories', maxFactories))) return 'too_many';
  const [alias] = await tx.query(readIsAliasTaken, [teamId, request.alias ?? null]);
  if (alias?.is_taken) return 'taken';
  const [made] = await tx.query(insert, [
    newUid(),
    teamId,
    request.name,
    request.description ?? null,
    request.alias ?? null,
    JSON.stringify(request.repositories ?? []),
    JSON.stringify(request.agent_defaults ?? {}),
    by.creator.uid,
  ]);
  if (!made) throw new Error('the factory was not inserted');
  await replaceFactoryAgents(tx, made.uid, [newForeman]);
  await reviseDefinition(tx, made.uid, by);
  const { name, repositories } = made;
  const subject = { type: 'factory', uid: made.uid, name };
  await recordChange(tx, by, { action: 'factory.create', subject, after: { name, alias: made.alias, repositories } });
  return { ...toFactory(made), agents: [newForeman] };
}

/** Replaces the members of a factory. The caller has locked the factory. `taken`: another factory of the team has the alias. */
export async function defineFactory(
  tx: Queryable,
  { teamId, factoryUid }: { readonly teamId: string; readonly factoryUid: string },
  wanted: CreateFactoryRequest & DeclaredMembers,
): Promise<'defined' | 'taken'> {
  // So no other factory takes the alias before this transaction ends.
  await lockRows(tx, teamId, 'factories');
  const [owner] = await tx.query(readAliasOwner, [teamId, wanted.alias ?? null]);
  if (owner && owner.uid !== factoryUid) return 'taken';
  await tx.query(define, [
    teamId,
    factoryUid,
    wanted.name,
    wanted.description ?? null,
    wanted.alias ?? null,
    JSON.stringify(wanted.repositories ?? []),
    JSON.stringify(wanted.agent_defaults ?? {}),
    wanted.integrations && JSON.stringify(wanted.integrations),
    wanted.credential_strategy,
  ]);
  return 'defined';
}

/** Deletes a factory with its webhooks. Returns false if the team has no such factory. */
export async function deleteFactory(db: Database, by: Author, uid: string): Promise<boolean> {
  return await db.transaction(async (tx) => {
    if (!(await lockFactory(tx, by.teamId, uid))) return false;
    await lockPartsOfFactory(tx, uid);
    const [gone] = await tx.query(remove, [by.teamId, uid]);
    if (!gone) return false;
    const subject = { type: 'factory', uid, name: gone.name };
    await recordChange(tx, by, { action: 'factory.delete', subject, endsAccess: true });
    return true;
  });
}
