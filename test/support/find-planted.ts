/** Searches all stored data of a system for planted texts. */
import { readdir, readFile } from 'node:fs/promises';
import path from 'node:path';
import pg from 'pg';
import { superuser } from '../../packages/service/src/platform/store/embedded/cluster.ts';

/** Returns the files below the folder that contain one of the texts unchanged. These can be blobs, logs and files of the database. */
export async function filesHolding(folder: string, planted: readonly string[]): Promise<string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile()).map((entry) => path.join(entry.parentPath, entry.name));
  const holding: string[] = [];
  for (const file of files) {
    const bytes = await readFile(file).catch(() => Buffer.alloc(0));
    if (planted.some((each) => bytes.includes(each))) holding.push(file);
  }
  return holding;
}

/** Connects to the embedded PostgreSQL server. The fifth line of the server's pid file is the folder of its socket. */
async function connectEmbedded(dataDir: string): Promise<pg.Client> {
  const names = await readdir(dataDir, { recursive: true });
  const pidFile = names.find((name) => name.endsWith('cluster/postmaster.pid'));
  if (pidFile === undefined) throw new Error(`no database runs in ${dataDir}`);
  const host = (await readFile(path.join(dataDir, pidFile), 'utf8')).split('\n')[4];
  const client = new pg.Client({ host, port: 5432, user: superuser, database: 'postgres' });
  await client.connect();
  return client;
}

/**
 * Returns whether a value of any type contains one of the texts. Searches strings and bytes, and the names and values of the members
 * of objects.
 */
function holds(value: unknown, planted: readonly string[]): boolean {
  if (Buffer.isBuffer(value)) return planted.some((each) => value.includes(each));
  if (typeof value === 'string') return planted.some((each) => value.includes(each));
  if (value === null || typeof value !== 'object' || value instanceof Date) return false;
  return Object.entries(value).some(([name, part]) => holds(name, planted) || holds(part, planted));
}

/**
 * Returns the names (`table.column`) of all columns in the embedded database that contain one of the texts. A search of the database's
 * files would not find long values, because PostgreSQL compresses them.
 */
export async function columnsHolding(
  dataDir: string,
  planted: readonly string[],
): Promise<{ readonly columns: string[]; readonly rows: number }> {
  const client = await connectEmbedded(dataDir);
  try {
    const tables = await client.query<{ name: string }>(
      "SELECT format('%I.%I', schemaname, tablename) AS name FROM pg_tables WHERE schemaname NOT IN ('pg_catalog', 'information_schema')",
    );
    const columns = new Set<string>();
    let count = 0;
    for (const { name } of tables.rows) {
      const { rows } = await client.query<Record<string, unknown>>(`SELECT * FROM ${name}`);
      count += rows.length;
      for (const row of rows)
        for (const [column, value] of Object.entries(row)) if (holds(value, planted)) columns.add(`${name}.${column}`);
    }
    return { columns: [...columns], rows: count };
  } finally {
    await client.end();
  }
}
