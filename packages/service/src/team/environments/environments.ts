import { createHash } from 'node:crypto';
import { allowedHostsOf } from '@runyard/contract/egress/network';
import type { Environment, EnvironmentConfig } from '@runyard/contract/environments/environments';
import { maxEnvironments } from '@runyard/contract/limits';
import type { Queryable } from '../../platform/store/database/database.ts';
import {
  boolean,
  defineStatement,
  json,
  nullable,
  type RowOf,
  text,
  timestamp,
} from '../../platform/store/database/statement.ts';
import type { RunActor } from '../access/actor.ts';
import { type Author, recordChange, type State } from '../access/audit/record.ts';
import { requireMaker, scopeOf } from '../access/ownership.ts';
import { readProfiles } from '../access/profiles.ts';
import { teamHasRoom } from '../access/teams/has-room.ts';
import { newUid } from '../access/teams/uid.ts';
import { visitByLink } from './link.ts';
import { guestOf } from './may-use.ts';

/**
 * A caller who may see the environments of the team. A person may also see environments of other teams as a guest, by invitation or link.
 */
export interface EnvironmentContext {
  readonly teamId: string;
  readonly creator: RunActor;
}

/** Returns the uid of the caller if the caller is a person; otherwise null, because only people can be guests. */
export const guestUid = ({ creator }: Pick<EnvironmentContext, 'creator'>): string | null =>
  creator.kind === 'user' ? creator.uid : null;

/** The members of an environment that describe the runs of a team in it. */
export type EnvironmentRuns = Pick<Environment, 'setup_failed' | 'last_task_run_timestamp' | 'last_task_created'>;

/**
 * Reads the last run in each of these environments. Only runs of the given team count, so that a guest does not see runs of other teams.
 * The result has no entry for environments without a run. The folder `runs` passes this function, because this folder may not import
 * `runs`.
 */
export type ReadEnvironmentRuns = (
  db: Queryable,
  teamId: string,
  uids: readonly string[],
) => Promise<ReadonlyMap<string, EnvironmentRuns>>;

const select = `
  SELECT e.uid, (SELECT uid FROM teams WHERE teams.id = e.team_id) AS team_uid, e.config, e.updated_at, e.link_shared_at IS NOT NULL AS is_link_shared,
    CASE WHEN e.creator_uid IS NOT NULL THEN jsonb_build_object('kind', e.creator_kind, 'uid', e.creator_uid) END AS creator,
    CASE WHEN e.last_editor_uid IS NOT NULL
      THEN jsonb_build_object('kind', e.last_editor_kind, 'uid', e.last_editor_uid) END AS last_editor
  FROM environments e
  WHERE e.uid IN (SELECT uid FROM environments WHERE team_id = $1 UNION ALL ${guestOf('$2')})`;

const row = {
  uid: text(),
  team_uid: text(),
  config: json<EnvironmentConfig>(),
  updated_at: timestamp,
  is_link_shared: boolean,
  creator: nullable(json<RunActor>()),
  last_editor: nullable(json<RunActor>()),
};

const readByName = defineStatement({
  name: 'read_environments_by_name',
  text: `${select} ORDER BY e.config->>'name' COLLATE "C", e.uid`,
  row,
});

const readByUpdate = defineStatement({
  name: 'read_environments_by_update',
  text: `${select} ORDER BY e.updated_at DESC, e.uid`,
  row,
});

const readOne = defineStatement({
  name: 'read_environment',
  text: `${select} AND e.uid = $3`,
  row,
});

const insert = defineStatement({
  name: 'insert_environment',
  text: `
    INSERT INTO environments (uid, team_id, config, creator_kind, creator_uid, last_editor_kind, last_editor_uid)
    VALUES ($1, $2, $3, $4, $5, $4, $5)`,
  row: {},
});

const update = defineStatement({
  name: 'update_environment',
  text: `
    WITH before AS (SELECT uid, config, creator_kind FROM environments WHERE team_id = $1 AND uid = $2 FOR UPDATE)
    UPDATE environments e SET config = $3, last_editor_kind = $4, last_editor_uid = $5, updated_at = now()
    FROM before WHERE e.uid = before.uid RETURNING before.config, before.creator_kind`,
  row: { config: json<EnvironmentConfig>(), creator_kind: nullable(text<RunActor['kind']>()) },
});

const lockConfig = defineStatement({
  name: 'lock_environment_config',
  text: 'SELECT config FROM environments WHERE team_id = $1 AND uid = $2 FOR UPDATE',
  row: { config: json<EnvironmentConfig>() },
});

const remove = defineStatement({
  name: 'delete_environment',
  text: 'DELETE FROM environments WHERE team_id = $1 AND uid = $2 RETURNING config, creator_kind',
  row: { config: json<EnvironmentConfig>(), creator_kind: nullable(text<RunActor['kind']>()) },
});

type EnvironmentRow = RowOf<typeof readOne>;

async function toEnvironments(
  db: Queryable,
  context: EnvironmentContext,
  rows: readonly EnvironmentRow[],
  readRuns: ReadEnvironmentRuns,
): Promise<Environment[]> {
  const runs = await readRuns(
    db,
    context.teamId,
    rows.map(({ uid }) => uid),
  );
  const people = rows.flatMap(({ creator, last_editor }) => [creator, last_editor]).filter((actor) => actor !== null);
  const profileOf = await readProfiles(db, context.teamId, people);
  return rows.map((row) => ({
    uid: row.uid,
    config: row.config,
    last_updated: row.updated_at,
    ...(runs.get(row.uid) ?? { setup_failed: false }),
    scope: scopeOf({ teamId: context.teamId }, row.team_uid),
    ...(row.is_link_shared ? { is_link_shared: true as const } : {}),
    ...(row.creator ? { creator: profileOf(row.creator) } : {}),
    ...(row.last_editor ? { last_editor: profileOf(row.last_editor) } : {}),
  }));
}

/** Lists the environments of the team. `name`: sorted by name, then uid; `last_updated`: the last changed environment first. */
export async function listEnvironments(
  db: Queryable,
  context: EnvironmentContext,
  sortBy: 'name' | 'last_updated',
  readRuns: ReadEnvironmentRuns,
): Promise<Environment[]> {
  const rows = await db.query(sortBy === 'name' ? readByName : readByUpdate, [context.teamId, guestUid(context)]);
  return await toEnvironments(db, context, rows, readRuns);
}

/** Returns the configurations of the same environments, by name. */
export async function listConfigs(
  db: Queryable,
  context: EnvironmentContext,
): Promise<readonly Pick<Environment, 'uid' | 'config'>[]> {
  return await db.query(readByName, [context.teamId, guestUid(context)]);
}

/**
 * Returns an environment; null if there is none with this uid that the caller may see. A person who has the link of an environment may see
 * it.
 */
export async function readEnvironment(
  db: Queryable,
  context: EnvironmentContext,
  uid: string,
  readRuns: ReadEnvironmentRuns,
): Promise<Environment | null> {
  const person = guestUid(context);
  const read = () => db.query(readOne, [context.teamId, person, uid]);
  let rows = await read();
  if (rows.length === 0 && person !== null && (await visitByLink(db, uid, person))) rows = await read();
  return (await toEnvironments(db, context, rows, readRuns))[0] ?? null;
}

/**
 * Returns a configuration as the audit log shows it. The result has only fingerprints of the setup commands and services, because people
 * write passwords into commands, and the log is kept longer than the environment.
 */
function stateOf({
  name,
  description,
  docker_image,
  system,
  github_repos,
  protected_branches,
  setup_commands,
  services,
  secrets,
  variables,
  working_directory,
  network,
  provider_tools,
  github_tools,
}: EnvironmentConfig): State {
  const allowedHosts = allowedHostsOf(network);
  const print = (commands: unknown) => createHash('sha256').update(JSON.stringify(commands)).digest('hex').slice(0, 16);
  return {
    name,
    description,
    docker_image,
    system,
    github_repos: github_repos?.map(({ owner, repo }) => `${owner}/${repo}`),
    protected_branches,
    working_directory,
    provider_tools,
    ...(github_tools ? { github_tools: Object.entries(github_tools).map(([tool, most]) => `${tool} ${most}`) } : {}),
    ...(allowedHosts.length > 0 ? { allowed_hosts: allowedHosts } : {}),
    variables: variables && Object.keys(variables),
    secrets: secrets?.map((secret) => secret.name),
    ...(setup_commands?.length ? { setup_commands: `${setup_commands.length}, sha256 ${print(setup_commands)}` } : {}),
    ...(services?.length
      ? { services: `${services.map((service) => service.name).join(', ')}, sha256 ${print(services)}` }
      : {}),
  };
}

/** Creates an environment. `too_many`: the team already has the maximum number of environments. */
export async function createEnvironment(
  tx: Queryable,
  context: EnvironmentContext & Author,
  config: EnvironmentConfig,
  readRuns: ReadEnvironmentRuns,
): Promise<Environment | 'too_many'> {
  const uid = newUid();
  const { teamId, creator } = context;
  if (!(await teamHasRoom(tx, context, 'environments', maxEnvironments))) return 'too_many';
  await tx.query(insert, [uid, teamId, JSON.stringify(config), creator.kind, creator.uid]);
  const made = await readEnvironment(tx, context, uid, readRuns);
  if (!made) throw new Error('the environment was not inserted');
  const subject = { type: 'environment', uid, name: config.name };
  await recordChange(tx, context, { action: 'environment.create', subject, after: stateOf(config) });
  return made;
}

/**
 * Locks an environment until the transaction ends, and returns its configuration. Returns null if the team has no such
 * environment.
 */
export async function lockEnvironment(tx: Queryable, teamId: string, uid: string): Promise<EnvironmentConfig | null> {
  return (await tx.query(lockConfig, [teamId, uid]))[0]?.config ?? null;
}

/** Replaces the configuration. Returns false if the team has no such environment. Throws `MadeByPerson`. */
export async function updateEnvironment(
  tx: Queryable,
  by: Author,
  uid: string,
  config: EnvironmentConfig,
): Promise<boolean> {
  const { teamId, creator } = by;
  const [before] = await tx.query(update, [teamId, uid, JSON.stringify(config), creator.kind, creator.uid]);
  if (!before) return false;
  requireMaker(by, before.creator_kind);
  await recordChange(tx, by, {
    action: 'environment.update',
    subject: { type: 'environment', uid, name: config.name },
    before: stateOf(before.config),
    after: stateOf(config),
  });
  return true;
}

/**
 * Deletes an environment. Its runs keep the uid of the environment. Returns false if the team has no such environment. Throws
 * `MadeByPerson`.
 */
export async function deleteEnvironment(tx: Queryable, by: Author, uid: string): Promise<boolean> {
  const [gone] = await tx.query(remove, [by.teamId, uid]);
  if (!gone) return false;
  requireMaker(by, gone.creator_kind);
  const subject = { type: 'environment', uid, name: gone.config.name };
  await recordChange(tx, by, { action: 'environment.delete', subject, before: stateOf(gone.config), endsAccess: true });
  return true;
}
