/**
 * Test support: makes databases, each with a folder of blobs, and a file with which a test moves the content from one database to
 * another.
 */
import { randomBytes, randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { afterEach, beforeEach } from 'vitest';
import type { BlobStore } from '../../packages/service/src/platform/store/blobs/blobs.ts';
import { openFolderBlobs } from '../../packages/service/src/platform/store/blobs/folder-blobs.ts';
import type { Database } from '../../packages/service/src/platform/store/database/database.ts';
import { silentLog } from '../../packages/service/src/platform/store/database/log.ts';
import { openDatabase } from '../../packages/service/src/platform/store/database/open-database.ts';
import { migrateDatabase } from '../../packages/service/src/platform/store/migrations/migrate.ts';
import { createEmptyDatabase, createTestDatabase } from '../../packages/service/test/database.ts';

export interface Place {
  readonly db: Database;
  readonly blobs: BlobStore;
}

interface Places {
  /**
   * Makes an empty database and an empty folder of blobs. `server`: URL of the PostgreSQL server; default: the server of the tests.
   * With `migrated: false`, the database has no tables.
   */
  place(options?: { readonly server?: string; readonly migrated?: boolean }): Promise<Place>;
  /** Folder of the current test. */
  folder(): string;
  /** Path for an export. */
  file(): string;
}

/** Makes a folder for each test. After the test, removes the folder, databases and blobs of the test. */
export function usePlaces(): Places {
  let folder: string;
  let cleanUp: (() => Promise<unknown>)[];
  beforeEach(async () => {
    folder = await mkdtemp(path.join(tmpdir(), 'runyard-export-'));
    cleanUp = [];
  });
  afterEach(async () => {
    for (const step of cleanUp.reverse()) await step();
    await rm(folder, { recursive: true });
  });
  const openBlobs = () => openFolderBlobs(path.join(folder, randomUUID()));
  return {
    folder: () => folder,
    file: () => path.join(folder, 'export'),
    async place({ server, migrated = true } = {}) {
      if (server === undefined && migrated) {
        const { db, drop } = await createTestDatabase({ maxConnections: 4 });
        cleanUp.push(drop);
        return { db, blobs: await openBlobs() };
      }
      const made = await createEmptyDatabase(server);
      const db = await openDatabase({ address: { connectionString: made.url }, maxConnections: 4, log: silentLog });
      cleanUp.push(made.drop, () => db.close());
      if (migrated) await migrateDatabase(db);
      return { db, blobs: await openBlobs() };
    },
  };
}

const awkward = 'tab\t newline\n backslash \\ \\. \\N quote " \' €  \u{1f600} \u0001';
const picture = randomBytes(3_000_000);

/**
 * Inserts rows with values of every type, references in both directions, and every character that the text format of COPY must escape.
 */
export async function fill({ db, blobs }: Place): Promise<void> {
  const [team, user, parent, child] = [randomUUID(), randomUUID(), randomUUID(), randomUUID()];
  await db.query(
    `INSERT INTO teams (id, uid, name, served_at) VALUES ($1, 'team', $2, '2026-11-21T10:44:01.123456Z'), ($3, 'other', '', '-infinity')`,
    [team, awkward, randomUUID()],
  );
  await db.query(`INSERT INTO users (id, uid, display_name) VALUES ($1, 'user', '\\.')`, [user]);
  await db.query(`INSERT INTO server_secrets VALUES ('key', $1)`, [Buffer.from([0, 1, 92, 10, 255])]);
  const [schema] = await db.query<{ isSplit: boolean }>(`SELECT to_regclass('run_requests') IS NOT NULL AS "isSplit"`);
  const toRequests = 'WITH request AS (INSERT INTO run_requests (run_id, prompt, config) VALUES ($1, $3, $4))';
  // Before the table run_requests, runs had its columns.
  const [before, columns, values] = schema?.isSplit ? [toRequests, '', ''] : ['', 'prompt, config,', '$3, $4,'];
  // Insert the child first, so that its parent comes later in the exported file.
  for (const [id, parentId] of [
    [parent, null],
    [child, parent],
  ]) {
    await db.query(
      `${before}
       INSERT INTO runs (id, team_id, state, title, ${columns} model_id, harness, source, creator_kind, creator_uid, executor_kind, executor_uid,
         parent_run_id, ancestor_ids, conversation_id, current_execution_id)
       VALUES ($1, $2, 'QUEUED', $3, ${values} 'm', 'oz', 'API', 'user', 'u', 'user', 'u', $5, $6, $1, $1)`,
      [id, team, awkward, JSON.stringify({ text: awkward, list: [1, null] }), parentId, parentId ? [parentId] : []],
    );
  }
  await blobs.put('artifacts/empty', Readable.from([]), { maxBytes: 10 });
  await blobs.put('artifacts/picture', Readable.from([picture]), { maxBytes: 1e7 });
}

/** Returns every row of every table as text, and the next value of an identity column. */
export async function contents({ db, blobs }: Place): Promise<unknown> {
  const tables = await db.query<{ name: string }>(
    `SELECT tablename AS name FROM pg_tables WHERE schemaname = 'public' AND tablename <> 'schema_migrations' ORDER BY 1`,
  );
  const rows: Record<string, unknown> = {};
  for (const { name } of tables) rows[name] = await db.query(`SELECT t::text FROM ${name} t ORDER BY 1`);
  const stored: Record<string, string> = {};
  for await (const { key } of blobs.list()) {
    const blob = await blobs.get(key);
    if (blob) stored[key] = (await buffer(blob.stream)).toString('base64');
  }
  const constraints = await db.query(
    `SELECT conrelid::regclass::text AS t, conname, pg_get_constraintdef(oid) AS d, convalidated FROM pg_constraint WHERE contype = 'f' ORDER BY 1, 2`,
  );
  return { rows, stored, constraints };
}

export const isEmpty = async ({ db, blobs }: Place) => {
  const [row] = await db.query<{ n: number }>('SELECT (SELECT count(*) FROM teams) + (SELECT count(*) FROM runs) AS n');
  for await (const _ of blobs.list()) return false;
  return row?.n === 0;
};
