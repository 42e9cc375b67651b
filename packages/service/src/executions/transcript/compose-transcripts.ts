import { randomUUIDv7 } from 'node:crypto';
import { backoffMs } from '@runyard/contract/backoff';
import type { Logger } from 'pino';
import { deleteTranscriptChunks, readTranscriptChunks } from '../../conversations/transcript-chunks.ts';
import type { BlobStore } from '../../store/blobs/blobs.ts';
import type { Database } from '../../store/database/database.ts';
import { eachAlone } from '../../store/database/each-alone.ts';
import { defineStatement, integer, uuid } from '../../store/database/statement.ts';

interface TranscriptComposerDeps {
  readonly db: Database;
  readonly blobs: BlobStore;
  readonly log: Pick<Logger, 'error'>;
}

const pageSize = 20;

/** Finds ended executions whose transcript is still in rows. */
export const findComposable = defineStatement({
  name: 'find_composable_transcripts',
  text: `
    SELECT id, transcript_bytes FROM executions
    WHERE phase = 'ended' AND transcript_blob IS NULL AND has_transcript ORDER BY id LIMIT ${pageSize}`,
  row: { id: uuid, transcript_bytes: integer },
});

const findNextComposable = defineStatement({
  name: 'find_next_composable_transcripts',
  text: `
    SELECT id, transcript_bytes FROM executions
    WHERE phase = 'ended' AND transcript_blob IS NULL AND has_transcript AND id > $1 ORDER BY id LIMIT ${pageSize}`,
  row: { id: uuid, transcript_bytes: integer },
});

/** Records the blob and deletes the rows, all or nothing, and only if no other process has recorded a blob. */
const keepBlob = defineStatement({
  name: 'keep_transcript_blob',
  text: `
    WITH kept AS (UPDATE executions SET transcript_blob = $2 WHERE id = $1 AND phase = 'ended' AND transcript_blob IS NULL RETURNING id)
    ${deleteTranscriptChunks('kept')} RETURNING 1 AS deleted`,
  row: { deleted: integer },
});

/** Times between two attempts to compose a transcript that cannot be composed. */
const retry = { firstMs: 2_000, longestMs: 600_000 };

/**
 * Returns the function that moves the transcripts of ended executions from rows into blobs. The agent of an ended execution writes no
 * more. Each attempt writes its own blob, and one statement records it, so a process that ends before that, or is slower than another
 * one, loses nothing and stores nothing twice. A transcript that cannot be composed does not delay the others, and is tried again later.
 */
export function makeTranscriptComposer({ db, blobs, log }: TranscriptComposerDeps): () => Promise<void> {
  const failed = new Map<string, { readonly failures: number; readonly notBefore: number }>();

  const onFailure = (id: string, error: unknown): void => {
    const failures = (failed.get(id)?.failures ?? 0) + 1;
    failed.set(id, { failures, notBefore: performance.now() + backoffMs(retry, failures) });
    // After a single failure, another process was probably faster.
    if (failures > 1) log.error({ err: error, execution_id: id, failures }, 'a transcript cannot be composed');
  };

  return async () => {
    const found = new Set<string>();
    let page = await db.query(findComposable);
    while (page.length > 0) {
      for (const { id } of page) found.add(id);
      const due = page.filter(({ id }) => (failed.get(id)?.notBefore ?? 0) <= performance.now());
      await eachAlone(
        due,
        (row) => compose(db, blobs, row),
        ({ id }, error) => onFailure(id, error),
      );
      const last = page.length < pageSize ? undefined : page.at(-1);
      page = last === undefined ? [] : await db.query(findNextComposable, [last.id]);
    }
    // What is not found any more was composed later, or deleted.
    for (const id of failed.keys()) if (!found.has(id)) failed.delete(id);
  };
}

/** Throws if the stored rows are not the whole transcript: some are damaged, or another process has deleted them after it made the blob. */
async function compose(db: Database, blobs: BlobStore, row: { id: string; transcript_bytes: number }): Promise<void> {
  const { id, transcript_bytes: bytes } = row;
  const key = `transcripts/${id}/${randomUUIDv7()}`;
  const stored = await blobs.put(key, readTranscriptChunks(db, id), { maxBytes: bytes });
  const isWhole = stored.outcome === 'stored' && stored.sizeBytes === bytes;
  const isKept = isWhole && (await db.query(keepBlob, [id, key])).length > 0;
  if (!isKept) await blobs.delete(key);
  if (!isWhole) throw new Error(`the rows of the transcript do not have its ${bytes} bytes`);
}
