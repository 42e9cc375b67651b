/**
 * Applies migrations: SQL files `migrations/NNNN_*.sql`, each once, in the order of their numbers. Each migration and its record
 * are written in one transaction, which holds an advisory lock. So any number of processes may start at the same time, and a process
 * that dies during a migration leaves no incomplete migration.
 */
import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import path from 'node:path';
import type pg from 'pg';
import type { Database, Queryable } from '../database/database.ts';

export interface Migration {
  readonly version: number;
  /** File name without its ending: `0001_access`. */
  readonly name: string;
  readonly sql: string;
  /** SHA-256 of the file, as hex. */
  readonly checksum: string;
  /**
   * The number of a migration. Code whose last migration has a lower number fails on a database that has applied this file. 0: all
   * older code works.
   */
  readonly oldestCode: number;
}

/**
 * A migration must contain this line if it removes or forbids something that older code uses. A migration without this line only adds
 * to the schema, so code of the previous release also works on the new schema.
 */
const contracts = /^-- Contract: needs code of migration (\d{4}) or later\.$/m;

/** An arbitrary number of 64 bits, the same in all versions of Runyard. */
const lockKey = '7236430154412310';

export const migrationsFolder = import.meta.dirname;

/** The number of the last migration of the baseline. The baseline is the files that create the whole schema; later files change the schema. */
const lastOfBaseline = 23;

/**
 * The baseline replaced 39 older migrations, 0001_access to 0039_list_pairs, which together made the same schema. So a database that has
 * all of them is adopted: its records are replaced by the records of the baseline.
 */
const replaced = {
  /** SHA-256 over one line `VERSION CHECKSUM` for each migration. */
  digest: 'd92bbe9c5892742252c402dca29321a5a1c9841764f654bc054e3d1ae3780b11',
  /**
   * The commits of Runyard versions that upgrade an older database so that this version can adopt it, in their order, by the checksum of the
   * first migration of the database. The 39 migrations had replaced 66 others in their turn.
   */
  commits: new Map([
    ['f0e5cf5efa9dffd340e73c7ecb20a3b9a4ea1b18e097b83f3d8d5547113cc996', ['42e71785']],
    ['4c62c72db3cf21362cb9e10f46fa16f9f60fb86ea17de1cfb8c22d91e4c9800e', ['b9d5a8d5', '42e71785']],
  ]),
};

/** Returns the commits that must be started on a database with these migrations before this version, in their order. */
export const commitsBefore = (applied: readonly Pick<AppliedMigration, 'checksum'>[]): readonly string[] =>
  replaced.commits.get(applied[0]?.checksum ?? '') ?? [];

/** Returns whether these migrations are `all` migrations that the baseline replaced, only `some` of them, or `none`. */
export function findReplaced(applied: readonly AppliedMigration[]): 'all' | 'some' | 'none' {
  if (commitsBefore(applied).length === 0) return 'none';
  const lines = applied.map(({ version, checksum }) => `${version} ${checksum}\n`);
  return createHash('sha256').update(lines.join('')).digest('hex') === replaced.digest ? 'all' : 'some';
}

/** Names the versions to start on a database before this one: "the Runyard of commit X once, then the one of commit Y once". */
export const describeCommits = (applied: readonly Pick<AppliedMigration, 'checksum'>[]): string =>
  `the Runyard of ${commitsBefore(applied)
    .map((commit) => `commit ${commit} once`)
    .join(', then that of ')}`;

export const baselineOf = (migrations: readonly Migration[]): Migration[] =>
  migrations.filter(({ version }) => version <= lastOfBaseline);

/** The file that `bin/generate` writes into the folder of the migrations. */
const generatedFile = 'statements.sql';

/**
 * Reads the migrations of a folder, in order. Throws if a file is not named `NNNN_*.sql` or two files have the same
 * number.
 */
export async function readMigrations(folder = migrationsFolder): Promise<Migration[]> {
  const migrations: Migration[] = [];
  const names = (await readdir(folder)).filter((name) => name.endsWith('.sql') && name !== generatedFile);
  for (const file of names.sort()) {
    const version = /^(\d{4})_[a-z0-9_]+\.sql$/.exec(file)?.[1];
    if (version === undefined) throw new Error(`${file} is not named like 0001_access.sql`);
    const text = await readFile(path.join(folder, file), 'utf8');
    // Git may have converted line ends to CRLF, so the checksum ignores the kind of line ends.
    const sql = text.replaceAll('\r\n', '\n');
    const checksum = createHash('sha256').update(sql).digest('hex');
    const oldestCode = Number(contracts.exec(sql)?.[1] ?? 0);
    if (migrations.at(-1)?.version === Number(version))
      throw new Error(`There are two migrations with the number ${version}`);
    migrations.push({ version: Number(version), name: file.slice(0, -4), sql, checksum, oldestCode });
  }
  return migrations;
}

export interface MigrateOptions {
  /** Default: the migrations of the service. */
  readonly folder?: string;
  /** The last migration to apply. Default: all. */
  readonly upTo?: number;
}

/**
 * Applies the migrations that the database does not have yet, and returns their names. A database that is newer than the code stays
 * unchanged if its newer migrations only added to the schema. Throws and changes nothing if a newer migration needs newer code, if the
 * file of an applied migration was changed, or if the database is older than the baseline.
 */
export async function migrateDatabase(db: Database, options: MigrateOptions = {}): Promise<string[]> {
  const { folder = migrationsFolder, upTo = Number.POSITIVE_INFINITY } = options;
  const migrations = await readMigrations(folder);
  return await db.onOwnConnection(async (client) => {
    const applied: string[] = [];
    for (;;) {
      const name = await applyNext(client, migrations, upTo);
      if (name === undefined) return applied;
      applied.push(name);
    }
  });
}

/**
 * Applies the migrations that the database does not have yet in the transaction of the caller, who rolls it back: so the caller sees the data
 * as after an upgrade. Returns their names. Throws if the database is older than the baseline.
 */
export async function tryMigrations(tx: Queryable): Promise<string[]> {
  const applied = await tx.query<AppliedMigration>(
    'SELECT version, name, checksum FROM schema_migrations ORDER BY version',
  );
  if (findReplaced(applied) !== 'none')
    throw new Error(
      `The database is older than the baseline. Before this Runyard, start ${describeCommits(applied)} on it.`,
    );
  const last = applied.at(-1)?.version ?? 0;
  const missing = (await readMigrations()).filter(({ version }) => version > last);
  for (const { sql } of missing) await tx.query(sql);
  return missing.map(({ name }) => name);
}

/** Returns the names of the migrations of the database that this version does not know, because a newer one has applied them. */
export async function findNewerMigrations(db: Queryable): Promise<string[]> {
  const last = (await readMigrations()).at(-1)?.version ?? 0;
  const rows = await db.query<{ name: string }>(
    'SELECT name FROM schema_migrations WHERE version > $1 ORDER BY version',
    [last],
  );
  return rows.map(({ name }) => name);
}

/** Applies one migration and returns its name; undefined if all are applied. */
async function applyNext(
  client: pg.Client,
  migrations: readonly Migration[],
  upTo: number,
): Promise<string | undefined> {
  await client.query('BEGIN');
  try {
    await client.query(`SELECT pg_advisory_xact_lock(${lockKey})`);
    await client.query(`CREATE TABLE IF NOT EXISTS schema_migrations (
      version integer PRIMARY KEY, name text NOT NULL, checksum text NOT NULL, applied_at timestamptz NOT NULL DEFAULT now(),
      oldest_code integer NOT NULL DEFAULT 0)`);
    const applied = await adoptReplaced(client, await readApplied(client), migrations);
    const next = nextToApply(
      applied,
      migrations.filter(({ version }) => version <= upTo),
    );
    if (next === undefined) await requireCompatible(client, applied, migrations);
    if (next !== undefined) {
      await client.query(next.sql).catch((error) => {
        throw new Error(`Migration ${next.name} failed: ${error instanceof Error ? error.message : error}`, {
          cause: error,
        });
      });
      await record(client, next);
    }
    await client.query('COMMIT');
    return next?.name;
  } catch (error) {
    await client.query('ROLLBACK').catch(() => undefined);
    throw error;
  }
}

async function record(client: pg.Client, { version, name, checksum, oldestCode }: Migration): Promise<void> {
  await client.query('INSERT INTO schema_migrations (version, name, checksum, oldest_code) VALUES ($1, $2, $3, $4)', [
    version,
    name,
    checksum,
    oldestCode,
  ]);
}

/** Throws if the database has migrations that this code does not know, and one of them needs newer code. */
async function requireCompatible(
  client: pg.Client,
  applied: readonly AppliedMigration[],
  migrations: readonly Migration[],
): Promise<void> {
  const last = migrations.at(-1)?.version ?? 0;
  if ((applied.at(-1)?.version ?? 0) <= last) return;
  const { rows } = await client.query<{ name: string; oldest_code: number }>(
    'SELECT name, oldest_code FROM schema_migrations WHERE version > $1 AND oldest_code > $1 ORDER BY oldest_code DESC LIMIT 1',
    [last],
  );
  const [needing] = rows;
  if (needing !== undefined)
    throw new Error(
      `The database is too new for this Runyard: its migration ${needing.name} needs code of migration ${needing.oldest_code} or later, and this code ends at ${last}. Start a newer Runyard.`,
    );
}

/**
 * If the database has all migrations that the baseline replaced, replaces its records by the records of the baseline. Throws if the
 * database has only some of these migrations.
 */
async function adoptReplaced(
  client: pg.Client,
  applied: readonly AppliedMigration[],
  migrations: readonly Migration[],
): Promise<readonly AppliedMigration[]> {
  switch (findReplaced(applied)) {
    case 'none':
      return applied;
    case 'some':
      throw new Error(
        `The database is too old for this Runyard: its last migration is ${applied.at(-1)?.name}. Start ${describeCommits(applied)} on it, then this one.`,
      );
    case 'all': {
      const baseline = baselineOf(migrations);
      await client.query('DELETE FROM schema_migrations');
      for (const migration of baseline) await record(client, migration);
      // The function filled a column of deliveries for code that does not work on this schema any more.
      await client.query('DROP FUNCTION IF EXISTS add_team_of_webhook_delivery CASCADE');
      return baseline;
    }
  }
}

export interface AppliedMigration {
  readonly version: number;
  readonly name: string;
  readonly checksum: string;
}

/** Returns the migrations that the database has, in order. */
export async function readApplied(client: pg.ClientBase): Promise<AppliedMigration[]> {
  const { rows } = await client.query<AppliedMigration>(
    'SELECT version, name, checksum FROM schema_migrations ORDER BY version',
  );
  return rows;
}

/** Reads the applied migrations; returns an empty list for a database that was never migrated. */
export async function readAppliedIfAny(client: pg.ClientBase): Promise<AppliedMigration[]> {
  const { rows } = await client.query<{ there: boolean }>(
    "SELECT to_regclass('schema_migrations') IS NOT NULL AS there",
  );
  return rows[0]?.there ? await readApplied(client) : [];
}

/**
 * Returns the first migration that is not applied; undefined if all are applied. The database may also have newer migrations. Throws
 * if the applied migrations differ from `migrations`.
 */
function nextToApply(applied: readonly AppliedMigration[], migrations: readonly Migration[]): Migration | undefined {
  for (const [index, done] of applied.entries()) {
    const known = migrations[index];
    if (known === undefined) return undefined;
    if (known.version > done.version)
      throw new Error(
        `The database has the migration ${done.name}, which this Runyard does not have. Start the Runyard that applied it.`,
      );
    if (known.version < done.version) {
      throw new Error(
        `Migration ${known.name} comes before ${done.name}, which is already applied. Give it a higher number.`,
      );
    }
    if (known.name !== done.name)
      throw new Error(
        `The database has the migration ${done.name} where this Runyard has ${known.name}: another line of versions made it, and this Runyard cannot upgrade it. Start the Runyard that made it, or start this one with a new data folder or database.`,
      );
    if (known.checksum !== done.checksum) {
      throw new Error(
        `Migration ${done.name} was changed after it was applied to this database. Restore its file; a change is a new migration.`,
      );
    }
  }
  return migrations[applied.length];
}
