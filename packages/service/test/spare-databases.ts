/**
 * Empties the database of an ended test, so that a later test of this process can use it. Creating and dropping a database would take
 * about six times as much processor time. The database is restored to its state after the migrations. If this is impossible, the
 * caller drops it.
 */
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import type { Database } from '../src/platform/store/database/database.ts';
import { trimConnections } from './lent-database.ts';

/** The state of a migrated database. */
interface Pristine {
  /**
   * SQL that returns a text about the schema. The text changes if a table, an index, a trigger, a function, a constraint or a setting
   * of the database changes.
   */
  readonly catalogSql: string;
  readonly catalog: string;
  readonly size: number;
  /** SQL that restores the rows and the sequences. */
  readonly reset: string;
}

/**
 * A database that has grown by more than this is dropped. Its deleted rows stay in the files, and its statistics may lead PostgreSQL
 * to bad plans.
 */
const growthLimitBytes = 4 * 2 ** 20;

/** A migrated database with open connections. */
export interface SpareDatabase {
  readonly url: string;
  readonly db: Database;
}

/** `application_name` of the connections of spare databases. Connections that a test opens have another name. */
export const spareConnections = 'runyard-spare';

const spares: SpareDatabase[] = [];

let pristine: Promise<Pristine> | undefined;

/** Returns an emptied database; undefined if there is no spare database. */
export const takeSpare = (): SpareDatabase | undefined => spares.pop();

/**
 * Records the state of a database that was just created from the template. Only the state of the first database is read, because all
 * have the same state.
 */
export async function notePristine({ db }: SpareDatabase): Promise<void> {
  pristine ??= readPristine(db.pool);
  await pristine;
}

/**
 * Empties a database and keeps it for a later test. Returns false if the database must be dropped, for example because a test still
 * has a connection to it.
 */
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
 * Waits until the connections of the test have ended. Returns false if a connection stays, because a program that uses it could write
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

/** Returns SQL that counts the rows of the catalog tables, and the rows in them that transactions after `mark` have written. */
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
    // Turn off triggers and foreign keys, so that the tables can be emptied in any order.
    'SET LOCAL session_replication_role = replica',
    ...tables.map(({ name }) => `DELETE FROM ${name}`),
    ...filled,
    ...sequences.map(({ name, start, last }) => `SELECT setval('${name}', ${last ?? start}, ${last !== null})`),
    'COMMIT',
  ].join(';\n');
  return { catalogSql, catalog: states[0]?.catalog ?? '', size: Number(states[0]?.size), reset };
}
