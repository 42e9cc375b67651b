/** Keeps the versions of definitions: lists, compares and applies them again. */

import type { DefinitionVariables } from '@runyard/contract/factories/definition-variables';
import type {
  DefinitionDiff,
  DefinitionVersion,
  DefinitionVersionItem,
  RollBackDefinitionRequest,
} from '@runyard/contract/factories/definition-versions';
import { maxDefinitionVersionBytes, maxDefinitionVersions } from '@runyard/contract/limits';
import { planChanges } from '@runyard/definitions/plan-changes';
import { readDefinition } from '@runyard/definitions/read-definition';
import type { Queryable } from '../../platform/store/database/database.ts';
import {
  defineStatement,
  integer,
  json,
  nullable,
  type RowOf,
  text,
  timestamp,
} from '../../platform/store/database/statement.ts';
import type { Author } from '../../team/access/audit/record.ts';
import { readProfiles } from '../../team/access/profiles.ts';
import { type ApplyOutcome, applyDefinition, type DefinitionDeps, toChanges } from './apply.ts';
import type { FactoryAddress } from './state.ts';
import type { StoredFile } from './stored.ts';

const row = {
  version: integer,
  file_bytes: integer,
  variables: json<DefinitionVariables>(),
  applied_by_uid: text(),
  applied_at: timestamp,
  commit_id: nullable(text()),
  rolled_back_to: nullable(integer),
};
const columns = Object.keys(row)
  .map((name) => `v.${name}`)
  .join(', ');

const readAll = defineStatement({
  name: 'read_versions_of_definition',
  text: `
    SELECT ${columns} FROM factory_definition_versions v JOIN factories f ON f.uid = v.factory_uid
    WHERE f.team_id = $1 AND f.uid = $2 ORDER BY v.version DESC`,
  row,
});

const readOne = defineStatement({
  name: 'read_version_of_definition',
  text: `
    SELECT ${columns}, v.files FROM factory_definition_versions v JOIN factories f ON f.uid = v.factory_uid
    WHERE f.team_id = $1 AND f.uid = $2 AND v.version = $3`,
  row: { ...row, files: nullable(json<StoredFile[]>()) },
});

const insert = defineStatement({
  name: 'insert_version_of_definition',
  text: `
    WITH old AS (DELETE FROM factory_definition_versions WHERE factory_uid = $1 AND version <= $2::integer - ${maxDefinitionVersions})
    INSERT INTO factory_definition_versions (factory_uid, version, files, file_bytes, variables, applied_by_uid, commit_id, rolled_back_to)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`,
  row: {},
});

/** A version to keep. */
interface NewVersion {
  readonly version: number;
  readonly files: readonly StoredFile[];
  readonly variables: DefinitionVariables;
  readonly applied_by_uid: string;
  readonly commit_id: string | null;
  readonly rolled_back_to: number | null;
}

/** Keeps a version, and deletes the oldest one above the limit. The caller has locked the factory. Files that are too large are left out. */
export async function keepVersion(tx: Queryable, factoryUid: string, version: NewVersion): Promise<void> {
  const bytes = version.files.reduce((sum, { content }) => sum + Buffer.byteLength(content), 0);
  await tx.query(insert, [
    factoryUid,
    version.version,
    bytes <= maxDefinitionVersionBytes ? JSON.stringify(version.files) : null,
    bytes,
    JSON.stringify(version.variables),
    version.applied_by_uid,
    version.commit_id,
    version.rolled_back_to,
  ]);
}

async function toVersions(
  db: Queryable,
  teamId: string,
  rows: readonly RowOf<typeof readAll>[],
): Promise<DefinitionVersion[]> {
  const actorOf = (uid: string) => ({ kind: 'user', uid }) as const;
  const profileOf = await readProfiles(
    db,
    teamId,
    rows.map(({ applied_by_uid: uid }) => actorOf(uid)),
  );
  return rows.map((found) => ({
    version: found.version,
    file_bytes: found.file_bytes,
    is_kept: found.file_bytes <= maxDefinitionVersionBytes,
    variables: found.variables,
    applied_at: found.applied_at,
    applied_by: profileOf(actorOf(found.applied_by_uid)),
    ...(found.commit_id === null ? {} : { commit: found.commit_id }),
    ...(found.rolled_back_to === null ? {} : { rolled_back_to: found.rolled_back_to }),
  }));
}

/** Returns the kept versions of the definition of a factory, newest first. The result is empty if the team has no such factory. */
export const listVersions = async (
  db: Queryable,
  { teamId, factoryUid }: FactoryAddress,
): Promise<DefinitionVersion[]> => await toVersions(db, teamId, await db.query(readAll, [teamId, factoryUid]));

/** Returns a version with its files; null if the factory has no such version. */
export async function readVersion(
  db: Queryable,
  { teamId, factoryUid }: FactoryAddress,
  version: number,
): Promise<DefinitionVersionItem | null> {
  const [found] = await db.query(readOne, [teamId, factoryUid, version]);
  const [item] = found ? await toVersions(db, teamId, [found]) : [];
  return item && found ? { ...item, ...(found.files ? { files: found.files } : {}) } : null;
}

/** Why two versions cannot be compared: 404 for a missing version, 409 for a version without files or of an older format. */
export type DiffOutcome =
  | { readonly kind: 'compared'; readonly diff: DefinitionDiff }
  | { readonly kind: 'no_version' | 'not_readable'; readonly version: number };

/** Compares two versions. Returns the changes that lead from `from` to `to`; the version 0 has no files. */
export async function compareVersions(
  db: Queryable,
  factory: FactoryAddress,
  { from, to }: { readonly from: number; readonly to: number },
): Promise<DiffOutcome> {
  const found: ReturnType<typeof definitionOf>[] = [];
  for (const version of [from, to]) {
    const item = version === 0 ? undefined : await readVersion(db, factory, version);
    if (item === null) return { kind: 'no_version', version };
    const definition = item && definitionOf(item);
    if (item && !definition) return { kind: 'not_readable', version };
    found.push(definition);
  }
  const [before, after] = found;
  if (!after) return { kind: 'no_version', version: to };
  return { kind: 'compared', diff: { from, to, changes: toChanges(planChanges(before, after).changes) } };
}

function definitionOf({ files = [], variables }: DefinitionVersionItem) {
  const read = readDefinition(files, { kept: variables });
  return read.ok ? read.definition : undefined;
}

/** `no_version` becomes 404. `not_kept` becomes 409: the files of the version were too large to be kept. */
export type RollbackOutcome = ApplyOutcome | { readonly kind: 'no_version' | 'not_kept' };

/**
 * Applies the files and the variables of an earlier version again, as the person `by`. This person is the author of every text that changes,
 * so the people who accepted the earlier version are asked again.
 */
export async function rollBack(
  deps: DefinitionDeps,
  by: Author,
  factoryUid: string,
  { version, dry_run, expected_version }: RollBackDefinitionRequest,
): Promise<RollbackOutcome> {
  const found = await readVersion(deps.db, { teamId: by.teamId, factoryUid }, version);
  if (!found) return { kind: 'no_version' };
  if (!found.files) return { kind: 'not_kept' };
  const request = {
    files: found.files,
    variables: found.variables,
    dry_run,
    ...(expected_version === undefined ? {} : { expected_version }),
  };
  return await applyDefinition(deps, by, factoryUid, request, { rolledBackTo: version });
}
