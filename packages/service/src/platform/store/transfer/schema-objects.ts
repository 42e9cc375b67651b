/** The objects that an export copies and an import fills: tables, sequences and foreign keys of the current schema. */
import type pg from 'pg';

export interface TableObject {
  readonly name: string;
  /** Without generated columns, which cannot be written. */
  readonly columns: readonly string[];
}

export async function readTables(client: pg.ClientBase): Promise<TableObject[]> {
  const { rows } = await client.query<{ name: string; columns: string[] }>(`
    SELECT c.relname AS name, array_agg(a.attname::text ORDER BY a.attnum) AS columns
    FROM pg_class c
    JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''
    WHERE c.relkind = 'r' AND c.relnamespace = current_schema()::regnamespace AND c.relname <> 'schema_migrations'
    GROUP BY c.relname ORDER BY c.relname COLLATE "C"`);
  return rows;
}

export async function readSequences(client: pg.ClientBase): Promise<string[]> {
  const { rows } = await client.query<{ name: string }>(`
    SELECT relname AS name FROM pg_class
    WHERE relkind = 'S' AND relnamespace = current_schema()::regnamespace ORDER BY relname COLLATE "C"`);
  return rows.map(({ name }) => name);
}

export interface ForeignKey {
  readonly table: string;
  readonly name: string;
  /** As in ALTER TABLE … ADD CONSTRAINT. */
  readonly definition: string;
}

export async function readForeignKeys(client: pg.ClientBase): Promise<ForeignKey[]> {
  const { rows } = await client.query<ForeignKey>(`
    SELECT c.relname AS table, k.conname AS name, pg_get_constraintdef(k.oid) AS definition
    FROM pg_constraint k JOIN pg_class c ON c.oid = k.conrelid
    WHERE k.contype = 'f' AND c.relnamespace = current_schema()::regnamespace ORDER BY c.relname, k.conname`);
  return rows;
}
