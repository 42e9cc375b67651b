/**
 * Empties the databases of ended tests for the next tests of this process: creating and dropping a database takes about six times the
 * processor time. A database is restored to the state after its migrations; one that cannot be is dropped.
 */
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';

/** The state of a migrated database. */
interface Pristine {
  readonly catalog: string;
  readonly size: number;
  /** Statements that restore rows and sequences. */
  readonly reset: string;
}

/** A larger database is dropped: deleted rows stay in its files, and its statistics may mislead the planner. */
const growthLimitBytes = 4 * 2 ** 20;

const spares: string[] = [];
let pristine: Promise<Pristine> | undefined;

/** Returns the address of an emptied database, or undefined if there is none. */
export const takeSpare = (): string | undefined => spares.pop();

/** Records the state of a database that was just created from the template. The state of the first one is used for all. */
export async function notePristine(url: string): Promise<void> {
  pristine ??= withClient(url, readPristine);
  await pristine;
}

/** Empties a database and keeps it; returns false for a database that must be dropped. */
export async function keepSpare(url: string): Promise<boolean> {
  const before = await pristine;
  if (before === undefined) return false;
  const isEmptied = await withClient(url, (client) => empty(client, before)).catch(() => false);
  if (isEmptied) spares.push(url);
  return isEmptied;
}

async function withClient<T>(url: string, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}

async function empty(client: pg.Client, before: Pristine): Promise<boolean> {
  if (!(await isAlone(client))) return false;
  const { rows } = await client.query<{ size: string; catalog: string }>(
    `SELECT pg_database_size(current_database()) AS size, ${catalog} AS catalog`,
  );
  const [found] = rows;
  if (found === undefined || found.catalog !== before.catalog) return false;
  if (Number(found.size) > before.size + growthLimitBytes) return false;
  await client.query(before.reset);
  return true;
}

/**
 * Waits until the connections that were just closed are gone. Returns false if one stays, because its program could write into the next
 * test.
 */
async function isAlone(client: pg.Client): Promise<boolean> {
  const deadline = performance.now() + 1000;
  for (;;) {
    const { rows } = await client.query(
      `SELECT FROM pg_stat_activity
       WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend' LIMIT 1`,
    );
    if (rows.length === 0) return true;
    if (performance.now() > deadline) return false;
    await delay(10);
  }
}

/** Changes with each change of a table, an index, a trigger, a function, a constraint or a setting of the database. */
const catalog = `concat_ws(' ', ${[
  ...[
    'pg_attribute',
    'pg_attrdef',
    'pg_index',
    'pg_trigger',
    'pg_proc',
    'pg_constraint',
    'pg_rewrite',
    'pg_extension',
  ].map((table) => `(SELECT count(*) || '/' || max(xmin::text::bigint) FROM ${table})`),
  `(SELECT count(*) || '/' || count(reloptions) FROM pg_class WHERE relkind <> 't')`,
  '(SELECT count(*) FROM pg_db_role_setting)',
].join(', ')})`;

async function readPristine(client: pg.Client): Promise<Pristine> {
  const { rows: states } = await client.query<{ catalog: string; size: string }>(
    `SELECT ${catalog} AS catalog, pg_database_size(current_database()) AS size`,
  );
  const { rows: tables } = await client.query<{ name: string }>(
    `SELECT oid::regclass::text AS name FROM pg_class WHERE relkind IN ('r', 'p') AND relnamespace = 'public'::regnamespace`,
  );
  const filled: string[] = [];
  for (const { name } of tables) {
    const { rows } = await client.query<{ content: string | null }>(
      `SELECT json_agg(t)::text AS content FROM ${name} t`,
    );
    const content = rows[0]?.content;
    if (content != null)
      filled.push(
        `INSERT INTO ${name} OVERRIDING SYSTEM VALUE SELECT * FROM json_populate_recordset(NULL::${name}, ${client.escapeLiteral(content)})`,
      );
  }
  const { rows: sequences } = await client.query<{ name: string; start: string; last: string | null }>(
    `SELECT (quote_ident(schemaname) || '.' || quote_ident(sequencename)) AS name, start_value AS start, last_value AS last FROM pg_sequences`,
  );
  const reset = [
    'BEGIN',
    // Without triggers and foreign keys, so in any order.
    'SET LOCAL session_replication_role = replica',
    ...tables.map(({ name }) => `DELETE FROM ${name}`),
    ...filled,
    ...sequences.map(({ name, start, last }) => `SELECT setval('${name}', ${last ?? start}, ${last !== null})`),
    'COMMIT',
  ].join(';\n');
  return { catalog: states[0]?.catalog ?? '', size: Number(states[0]?.size), reset };
}
