import pino from 'pino';
import { expect, test } from 'vitest';
import { closeAtEnd, newFolder } from '../../../../../test/support/close-at-end.ts';
import { openTestExecutions } from '../../../test/executions.ts';
import type { BlobStore } from '../../platform/store/blobs/blobs.ts';
import { openFolderBlobs } from '../../platform/store/blobs/folder-blobs.ts';
import { makeTranscriptComposer } from './compose-transcripts.ts';

const executions = closeAtEnd(await openTestExecutions());
const folder = newFolder();
const blobs = await openFolderBlobs(folder);

/** Adds ended executions. Each transcript has one row with the line `{}`, and a recorded size of `bytes` bytes. */
async function addEnded(count: number, bytes: number): Promise<void> {
  for (let n = 0; n < count; n++) await executions.newRun();
  await executions.deps.db.pool.query(
    `WITH added AS (UPDATE executions SET phase = 'ended', ended_at = now(), transcript_bytes = $1 WHERE phase = 'queued' RETURNING id)
     INSERT INTO transcript_chunks (execution_id, agent_seq, lines) SELECT id, 1, E'{}\n' FROM added`,
    [bytes],
  );
}

async function countComposed(): Promise<number> {
  const { rows } = await executions.deps.db.pool.query(
    'SELECT count(*)::int AS count FROM executions WHERE transcript_blob IS NOT NULL',
  );
  return rows[0].count;
}

test('the composer makes a blob of each complete transcript, even after more than a page of broken transcripts, and no blob of a broken transcript', async () => {
  await addEnded(25, 1_000);
  await addEnded(25, 3);
  const messages: string[] = [];
  const log = pino({ level: 'error' }, { write: (line) => messages.push(JSON.parse(line).msg) });
  const compose = makeTranscriptComposer({ db: executions.deps.db, blobs, log });
  await compose();
  expect(await countComposed()).toBe(25);
  let blobsLeft = 0;
  for await (const _ of blobs.list()) blobsLeft += 1;
  expect(blobsLeft).toBe(25);
  // The broken transcripts are tried again later, not at once.
  let puts = 0;
  const counted = {
    ...blobs,
    put: (...given: Parameters<BlobStore['put']>) => blobs.put(...given).finally(() => puts++),
  };
  const hour = 3_600_000;
  const retry = { firstMs: hour, longestMs: hour };
  const again = makeTranscriptComposer({ db: executions.deps.db, blobs: counted, log, retry });
  await again();
  await again();
  expect([puts, messages]).toEqual([25, []]);
});
