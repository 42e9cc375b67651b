/** Finds the environments that requests name. */
import type { EnvironmentConfig } from '@runyard/contract/environments/environments';
import type { Queryable } from '../../platform/store/database/database.ts';
import {
  boolean,
  defineStatement,
  integer,
  json,
  nullable,
  text,
  texts,
} from '../../platform/store/database/statement.ts';
import { type EnvironmentContext, guestUid } from './environments.ts';
import { visitByLink } from './link.ts';
import { guestOf } from './may-use.ts';

const readConfigs = defineStatement({
  name: 'read_environment_configs',
  text: 'SELECT uid, config FROM environments WHERE team_id = $1 AND uid = ANY ($2::text[])',
  row: { uid: text(), config: json<EnvironmentConfig>() },
});

const readNamed = defineStatement({
  name: 'read_named_environment',
  text: `SELECT team_id <> $1 AS is_guest, revision, CASE WHEN team_id = $1 OR uid IN (${guestOf('$3')}) THEN config END AS config FROM environments WHERE uid = $2`,
  row: { is_guest: boolean, revision: integer, config: nullable(json<EnvironmentConfig>()) },
});

/**
 * Says whether the caller of a request may use the environment that the request names. `config`: the configuration of the environment, if
 * the caller may use it.
 */
export type NamedEnvironment =
  /** `isGuest`: the environment belongs to another team, and the caller is a guest of the environment. */
  | { readonly kind: 'own'; readonly isGuest: boolean; readonly config: EnvironmentConfig; readonly revision: number }
  /** There is no such environment, or it belongs to another team. Callers must not learn which of these is true. */
  | { readonly kind: 'not_usable' };

/**
 * Finds the environment that a request of the caller names. An environment of which the caller is a guest, invited or through its link,
 * counts as the caller's own.
 */
export async function findNamedEnvironment(
  db: Queryable,
  caller: EnvironmentContext,
  uid: string,
): Promise<NamedEnvironment> {
  const person = guestUid(caller);
  const read = async () => (await db.query(readNamed, [caller.teamId, uid, person]))[0];
  let found = await read();
  if (found?.config === null && person !== null && (await visitByLink(db, uid, person))) found = await read();
  return !found || found.config === null
    ? { kind: 'not_usable' }
    : { kind: 'own', isGuest: found.is_guest, config: found.config, revision: found.revision };
}

const readAdmitted = defineStatement({
  name: 'read_people_admitted_to_environment',
  text: `
    SELECT p.uid FROM unnest($2::text[]) AS p (uid) WHERE $1 IN (${guestOf('p.uid')})`,
  row: { uid: text() },
});

/** Returns the people among `people` who may use the environment `uid` as guests. */
export async function findAdmitted(
  db: Queryable,
  uid: string,
  people: readonly string[],
): Promise<ReadonlySet<string>> {
  return new Set(people.length === 0 ? [] : (await db.query(readAdmitted, [uid, people])).map((row) => row.uid));
}

const readUids = defineStatement({
  name: 'read_uids_of_named_environments',
  text: `
    SELECT config->>'name' AS name, array_agg(uid ORDER BY uid) AS uids FROM environments
    WHERE team_id = $1 AND config->>'name' = ANY ($2::text[]) GROUP BY config->>'name'`,
  row: { name: text(), uids: texts },
});

/** Returns the uids of the team's environments with these names, by name. Several environments can have one name. */
export async function findEnvironmentsByName(
  db: Queryable,
  teamId: string,
  names: readonly string[],
): Promise<ReadonlyMap<string, readonly string[]>> {
  const rows = names.length === 0 ? [] : await db.query(readUids, [teamId, names]);
  return new Map(rows.map(({ name, uids }) => [name, uids]));
}

/** Reads the configurations of environments of the team, by uid. */
export async function readEnvironmentConfigs(
  db: Queryable,
  teamId: string,
  uids: readonly string[],
): Promise<ReadonlyMap<string, EnvironmentConfig>> {
  const rows = uids.length === 0 ? [] : await db.query(readConfigs, [teamId, uids]);
  return new Map(rows.map(({ uid, config }) => [uid, config]));
}
