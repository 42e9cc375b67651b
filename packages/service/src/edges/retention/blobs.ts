/**
 * Compares blobs and rows. A row is deleted before its blob, so a crash may leave a blob without a row; the sweep deletes this blob. A row
 * without its blob is only logged, because the row cannot be repaired. The cause is a bug, or a restore of only the rows or only the blobs.
 */
import type { Logger } from 'pino';
import type { BlobColumn } from '../../platform/domain.ts';
import type { BlobStore } from '../../platform/store/blobs/blobs.ts';
import { markerKey } from '../../platform/store/blobs/marker.ts';
import type { Queryable } from '../../platform/store/database/database.ts';

/** A blob is stored before its row, so a blob that is younger than this may still get its row. */
export const graceMs = 24 * 3600 * 1000;

const batchSize = 500;
const loggedAtMost = 100;

export interface BlobSweepDeps {
  readonly db: Queryable;
  readonly blobs: BlobStore;
  /**
   * The columns that name blobs, each with the prefix of its blobs' keys. The sweep never deletes a blob whose key begins with none of
   * these prefixes.
   */
  readonly columns: readonly BlobColumn[];
  readonly log: Logger;
  /** Returns the time in milliseconds since 1970, from the same clock as the dates of the blobs. */
  readonly now: () => number;
  /** Called between batches. Throws if the sweep must stop. */
  readonly goOn: () => Promise<void>;
}

/** Deletes blobs that no row names and that are older than the grace. Returns their number. */
export async function sweepUnreferencedBlobs(deps: BlobSweepDeps): Promise<number> {
  const { db, blobs, columns, log, now, goOn } = deps;
  let deleted = 0;
  let unknown = 0;
  const waiting = new Map<string, string[]>();
  const deleteOrphans = async (prefix: string, keys: readonly string[]) => {
    await goOn();
    // One statement checks all columns, because a transaction may move the name of a blob from one table to another.
    const named = columns
      .filter((each) => each.prefix === prefix)
      .map(({ table, column }) => `NOT EXISTS (SELECT FROM ${table} WHERE ${column} = key)`);
    const orphans = await db.query<{ key: string }>(
      `SELECT key FROM unnest($1::text[]) AS key WHERE ${named.join(' AND ')}`,
      [keys],
    );
    for (const { key } of orphans) await blobs.delete(key);
    deleted += orphans.length;
  };
  for await (const { key, storedAt } of blobs.list()) {
    if (key === markerKey || now() - storedAt.getTime() < graceMs) continue;
    const owner = columns.find(({ prefix }) => key.startsWith(`${prefix}/`))?.prefix;
    if (!owner) {
      unknown += 1;
      continue;
    }
    const keys = waiting.get(owner) ?? [];
    keys.push(key);
    waiting.set(owner, keys);
    if (keys.length === batchSize) await deleteOrphans(owner, keys.splice(0));
  }
  for (const [owner, keys] of waiting) if (keys.length > 0) await deleteOrphans(owner, keys);
  if (unknown > 0) log.warn({ blobs: unknown }, 'blobs of a kind that this version does not know were left alone');
  return deleted;
}

type MissingBlobDeps = Pick<BlobSweepDeps, 'db' | 'blobs' | 'columns' | 'goOn'> & {
  readonly log: Pick<Logger, 'error'>;
};

/** Logs rows whose blob is missing. Returns their number. */
export async function reportMissingBlobs(deps: MissingBlobDeps): Promise<number> {
  const { db, blobs, columns, log, goOn } = deps;
  let missing = 0;
  for (const { table, column } of columns) {
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
        // The row may have been deleted together with its blob after the batch was read.
        const still = await db.query(`SELECT FROM ${table} WHERE id = $1 AND ${column} = $2`, [id, key]);
        if (still.length === 0) continue;
        missing += 1;
        if (missing <= loggedAtMost) log.error({ table, id, blob_key: key }, 'a row names a missing blob');
      }
      if (rows.length < batchSize) break;
    }
  }
  if (missing > loggedAtMost) log.error({ missing }, 'more rows name missing blobs');
  return missing;
}
