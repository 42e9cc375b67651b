/** Stores the definitions that were applied to factories. */
import type { DefinitionVariables } from '@runyard/contract/factories/definition-variables';
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

/** An applied file. */
export interface StoredFile {
  readonly path: string;
  readonly content: string;
}

/** UIDs of the things that the files of a factory define, by name. */
export interface DefinedUids {
  readonly webhooks: Readonly<Record<string, string>>;
  readonly automations: Readonly<Record<string, string>>;
  /** Absent: the definition was applied before definitions had environments. */
  readonly environments?: Readonly<Record<string, string>>;
  /** UIDs of environments of the team that the files name but do not define. */
  readonly team_environments?: Readonly<Record<string, string>>;
}

const readOne = defineStatement({
  name: 'read_definition_of_factory',
  text: `
    SELECT d.version, d.files, d.variables, d.uids, d.applied_by_uid, d.applied_at, d.commit_id FROM factory_definitions d
    JOIN factories f ON f.uid = d.factory_uid WHERE f.team_id = $1 AND f.uid = $2`,
  row: {
    version: integer,
    files: json<StoredFile[]>(),
    variables: json<DefinitionVariables>(),
    uids: json<DefinedUids>(),
    applied_by_uid: text(),
    applied_at: timestamp,
    commit_id: nullable(text()),
  },
});

const write = defineStatement({
  name: 'write_definition_of_factory',
  text: `
    INSERT INTO factory_definitions (factory_uid, version, files, uids, applied_by_uid, commit_id, variables)
    VALUES ($1, $2, $3, $4, $5, $6, $7)
    ON CONFLICT (factory_uid) DO UPDATE SET version = excluded.version, files = excluded.files, uids = excluded.uids,
      variables = excluded.variables,
      applied_by_uid = excluded.applied_by_uid, commit_id = excluded.commit_id, applied_at = clock_timestamp()
    RETURNING version`,
  row: { version: integer },
});

const note = defineStatement({
  name: 'note_commit_of_definition',
  text: 'UPDATE factory_definitions SET commit_id = $2 WHERE factory_uid = $1',
  row: {},
});

const readRepository = defineStatement({
  name: 'read_repository_of_factory',
  text: `SELECT owner || '/' || repo AS repository FROM factory_sources WHERE factory_uid = $1`,
  row: { repository: text() },
});

export type StoredDefinition = Readonly<RowOf<typeof readOne>>;

/** Returns the last applied definition; null if no definition was applied. */
export async function readStoredDefinition(
  db: Queryable,
  teamId: string,
  factoryUid: string,
): Promise<StoredDefinition | null> {
  const [found] = await db.query(readOne, [teamId, factoryUid]);
  return found ?? null;
}

/** Replaces the stored definition of a factory. The caller has locked the factory. */
export async function writeStoredDefinition(
  tx: Queryable,
  factoryUid: string,
  written: Omit<StoredDefinition, 'applied_at'>,
): Promise<void> {
  const { version, files, uids, applied_by_uid, commit_id, variables } = written;
  await tx.query(write, [
    factoryUid,
    version,
    JSON.stringify(files),
    JSON.stringify(uids),
    applied_by_uid,
    commit_id,
    JSON.stringify(variables),
  ]);
}

/** Records that a later commit has the same definition files as those that are stored. */
export async function noteCommit(tx: Queryable, factoryUid: string, commit: string): Promise<void> {
  await tx.query(note, [factoryUid, commit]);
}

/** Returns `owner/repo` of the source of a factory; null if the factory has no source. The caller has locked the factory. */
export async function readRepositoryOfFactory(tx: Queryable, factoryUid: string): Promise<string | null> {
  return (await tx.query(readRepository, [factoryUid]))[0]?.repository ?? null;
}
