/**
 * Rows and blobs go in two steps, rows first, so a crash may leave a blob that no row names. It is found here, as is
 * the opposite, which only a fault or a restore of one without the other explains, and which nobody can repair.
 */
import type { Logger } from 'pino';
import type { BlobStore } from '../store/blobs/blobs.ts';
import type { Queryable } from '../store/database/database.ts';

/** A blob is put before its row is written: younger ones may be about to be used. */
export const graceMs = 24 * 3600 * 1000;

const batchSize = 500;
const loggedAtMost = 100;

interface BlobOwner {
  /** First segment of the keys. */
  readonly prefix: string;
  readonly table: string;
  readonly column: string;
}

/** Which rows name which blobs. Blobs with other keys are never deleted here. */
const blobOwners: readonly BlobOwner[] = [
  { prefix: 'attachments', table: 'attachments', column: 'blob_key' },
  { prefix: 'artifacts', table: 'artifacts', column: 'blob_key' },
  { prefix: 'transcripts', table: 'executions', column: 'transcript_blob' },
  { prefix: 'handoffs', table: 'snapshot_files', column: 'blob_key' },
  { prefix: 'workspaces', table: 'executions', column: 'workspace_blob' },
  { prefix: 'memories', table: 'executions', column: 'memory_blob' },
];

export interface BlobSweepDeps {
  readonly db: Queryable;
  readonly blobs: BlobStore;
  readonly log: Logger;
  /** Milliseconds since 1970, by the clock that dates the blobs. */
  readonly now: () => number;
  /** Called between batches; throws where the sweep must stop. */
  readonly goOn: () => Promise<void>;
}

/** Deletes blobs that no row names and that are older than the grace. Gives their number. */
export async function sweepUnreferencedBlobs(deps: BlobSweepDeps): Promise<number> {
  const { db, blobs, log, now, goOn } = deps;
  let deleted = 0;
  let unknown = 0;
  const waiting = new Map<BlobOwner, string[]>();
  const flush = async ({ table, column }: BlobOwner, keys: readonly string[]) => {
    await goOn();
    const orphans = await db.query<{ key: string }>(
      `SELECT key FROM unnest($1::text[]) AS key WHERE NOT EXISTS (SELECT FROM ${table} WHERE ${column} = key)`,
      [keys],
    );
    for (const { key } of orphans) await blobs.delete(key);
    deleted += orphans.length;
  };
  for await (const { key, storedAt } of blobs.list()) {
    if (now() - storedAt.getTime() < graceMs) continue;
    const owner = blobOwners.find(({ prefix }) => key.startsWith(`${prefix}/`));
    if (!owner) {
      unknown += 1;
      continue;
    }
    const keys = waiting.get(owner) ?? [];
    keys.push(key);
    waiting.set(owner, keys);
    if (keys.length === batchSize) await flush(owner, keys.splice(0));
  }
  for (const [owner, keys] of waiting) if (keys.length > 0) await flush(owner, keys);
  if (unknown > 0) log.warn({ blobs: unknown }, 'blobs of a kind that this version does not know were left alone');
  return deleted;
}

/** Logs rows whose blob is gone. Gives their number. */
export async function reportMissingBlobs(deps: BlobSweepDeps): Promise<number> {
  const { db, blobs, log, goOn } = deps;
  let missing = 0;
  for (const { table, column } of blobOwners) {
    let after = '00000000-0000-0000-0000-000000000000';
    for (;;) {
      await goOn();
      const rows = await db.query<{ id: string; key: string }>(
        `SELECT id, ${column} AS key FROM ${table} WHERE ${column} IS NOT NULL AND id > $1 ORDER BY id LIMIT ${batchSize}`,
        [after],
      );
      for (const { id, key } of rows) {
        after = id;
        if ((await blobs.stat(key)) !== undefined) continue;
        // Deleted since it was read, as the row is then too.
        const still = await db.query(`SELECT FROM ${table} WHERE id = $1 AND ${column} = $2`, [id, key]);
        if (still.length === 0) continue;
        missing += 1;
        if (missing <= loggedAtMost) log.error({ table, id, blob_key: key }, 'a row names a blob that is not there');
      }
      if (rows.length < batchSize) break;
    }
  }
  if (missing > loggedAtMost) log.error({ missing }, 'more rows name blobs that are not there');
  return missing;
}
