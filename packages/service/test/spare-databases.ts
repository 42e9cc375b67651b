/**
 * Empties the databases of ended tests for the next tests of this process: creating and dropping a database takes about six times as much
 * processor time. A database is restored to the state after its migrations; if this is impossible, it is dropped.
 */
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import type { Database } from '../src/platform/store/database/database.ts';
import { trimConnections } from './lent-database.ts';

/** The state of a migrated database. */
interface Pristine {
  /**
   * SQL that returns a text. The text changes with each change of a table, an index, a trigger, a function, a constraint or a setting of
   * the database.
   */
  readonly catalogSql: string;
  readonly catalog: string;
  readonly size: number;
  /** Statements that restore rows and sequences. */
  readonly reset: string;
}

/** A database that has grown by more than this is dropped. Deleted rows stay in its files, and its statistics may mislead the planner. */
const growthLimitBytes = 4 * 2 ** 20;

/** A migrated database with open connections. */
export interface SpareDatabase {
  readonly url: string;
  readonly db: Database;
}

/** `application_name` of these connections; the connections that a test opens have another name. */
export const spareConnections = 'runyard-spare';

const spares: SpareDatabase[] = [];

let pristine: Promise<Pristine> | undefined;

/** Returns an emptied database; undefined if there is none. */
export const takeSpare = (): SpareDatabase | undefined => spares.pop();

/** Records the state of a database that was just created from the template. The state of the first database is used for all. */
export async function notePristine({ db }: SpareDatabase): Promise<void> {
  pristine ??= readPristine(db.pool);
  await pristine;
}

/** Empties a database without connections, and keeps it; returns false for a database that must be dropped. */
export async function keepSpare(spare: SpareDatabase): Promise<boolean> {
  const before = await pristine;
  if (before === undefined) return false;
  const isEmptied = await empty(spare.db, before).catch(() => false);
  if (isEmptied) spares.push(spare);
  return isEmptied;
}

async function empty(db: Database, before: Pristine): Promise<boolean> {
  if (!(await trimConnections(db)) || !(await isAlone(db.pool))) return false;
  const { rows } = await db.pool.query<{ size: string; catalog: string }>(
    `SELECT pg_database_size(current_database()) AS size, ${before.catalogSql} AS catalog`,
  );
  const [found] = rows;
  if (found === undefined || found.catalog !== before.catalog) return false;
  if (Number(found.size) > before.size + growthLimitBytes) return false;
  await db.pool.query(before.reset);
  return true;
}

/**
 * Waits until the connections that were just closed are gone. Returns false if a connection stays, because its program could write
 * during the next test.
 */
async function isAlone(pool: pg.Pool): Promise<boolean> {
  const deadline = performance.now() + 1000;
  for (;;) {
    const { rows } = await pool.query(
      `SELECT FROM pg_stat_activity
       WHERE datname = current_database() AND application_name <> '${spareConnections}' AND backend_type = 'client backend' LIMIT 1`,
    );
    if (rows.length === 0) return true;
    if (performance.now() > deadline) return false;
    await delay(10);
  }
}

const catalogTables = [
  'pg_attribute',
  'pg_attrdef',
  'pg_index',
  'pg_trigger',
  'pg_proc',
  'pg_constraint',
  'pg_rewrite',
  'pg_extension',
];

/** Counts the rows of the catalog, and the rows that a transaction after `mark` wrote. */
const catalogSince = (mark: string): string =>
  `concat_ws(' ', ${[
    ...catalogTables.map(
      (table) => `(SELECT count(*) || '/' || count(*) FILTER (WHERE age(xmin) < age('${mark}'::xid)) FROM ${table})`,
    ),
    `(SELECT count(*) || '/' || count(reloptions) FROM pg_class WHERE relkind <> 't')`,
    '(SELECT count(*) FROM pg_db_role_setting)',
  ].join(', ')})`;

async function readPristine(pool: pg.Pool): Promise<Pristine> {
  const { rows: marks } = await pool.query<{ mark: string }>('SELECT pg_current_xact_id()::xid::text AS mark');
  const catalogSql = catalogSince(marks[0]?.mark ?? '');
  const { rows: states } = await pool.query<{ catalog: string; size: string }>(
    `SELECT ${catalogSql} AS catalog, pg_database_size(current_database()) AS size`,
  );
  const { rows: tables } = await pool.query<{ name: string }>(
    `SELECT oid::regclass::text AS name FROM pg_class WHERE relkind IN ('r', 'p') AND relnamespace = 'public'::regnamespace`,
  );
  const filled: string[] = [];
  for (const { name } of tables) {
    const { rows } = await pool.query<{ content: string | null }>(`SELECT json_agg(t)::text AS content FROM ${name} t`);
    const content = rows[0]?.content;
    if (content != null)
      filled.push(
        `INSERT INTO ${name} OVERRIDING SYSTEM VALUE SELECT * FROM json_populate_recordset(NULL::${name}, ${pg.escapeLiteral(content)})`,
      );
  }
  const { rows: sequences } = await pool.query<{ name: string; start: string; last: string | null }>(
    `SELECT (quote_ident(schemaname) || '.' || quote_ident(sequencename)) AS name, start_value AS start, last_value AS last FROM pg_sequences`,
  );
  const reset = [
    'BEGIN',
    // The rows are deleted without triggers and foreign keys, so the order of the tables does not matter.
    'SET LOCAL session_replication_role = replica',
    ...tables.map(({ name }) => `DELETE FROM ${name}`),
    ...filled,
    ...sequences.map(({ name, start, last }) => `SELECT setval('${name}', ${last ?? start}, ${last !== null})`),
    'COMMIT',
  ].join(';\n');
  return { catalogSql, catalog: states[0]?.catalog ?? '', size: Number(states[0]?.size), reset };
}
