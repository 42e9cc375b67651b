/** Test support: the nightly sweep with its own database and blob store, and rows that are old enough to be deleted. */
import { randomUUIDv7 } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { Readable } from 'node:stream';
import pino from 'pino';
import { afterAll, beforeEach } from 'vitest';
import { type SweepDeps, type SweepOutcome, sweepWhenDue } from '../src/edges/retention/sweep.ts';
import type { BlobStore } from '../src/platform/store/blobs/blobs.ts';
import { openFolderBlobs } from '../src/platform/store/blobs/folder-blobs.ts';
import type { Database } from '../src/platform/store/database/database.ts';
import type { NewRun } from '../src/runs/runs/submit/new-run.ts';
import { openTestExecutions, type TestExecutions } from './executions.ts';
import { registeredRetention } from './retention.ts';

export interface TestSweeps {
  readonly test: TestExecutions;
  readonly db: Database;
  readonly blobs: BlobStore;
  /** The log since the test began, as JSON lines. */
  readonly logged: string[];
  /** Does the sweep if it is due. */
  sweep(more?: Partial<SweepDeps>): Promise<SweepOutcome>;
  /** Makes the next sweep due. */
  night(): Promise<unknown>;
  /** Stores a blob of one byte under the key, and returns the key. */
  put(key: string): Promise<string>;
  isThere(key: string): Promise<boolean>;
  isRow(table: string, id: string): Promise<boolean>;
  /** Creates a run that ended this number of days ago, with events, an attachment and a transcript. */
  endedRun(
    daysAgo: number,
    more?: Partial<NewRun>,
  ): Promise<{ id: string; attachmentKey: string; transcriptKey: string }>;
  /** Creates more ended runs than one batch of the sweep holds. They ended one after the other. Returns their ids. */
  manyOldRuns(): Promise<string[]>;
  /** Returns how many conversation events of a run are still stored. */
  eventsOf(runId: string): Promise<number>;
}

/** Opens the test support for the tests of a file. Makes the sweep due before each test. */
export async function openTestSweeps(): Promise<TestSweeps> {
  const test = await openTestExecutions();
  const { db } = test.database;
  const folder = await mkdtemp(path.join(tmpdir(), 'runyard-retention-'));
  const blobs = await openFolderBlobs(folder);
  const logged: string[] = [];
  afterAll(async () => {
    await test.close();
    await rm(folder, { recursive: true, force: true });
  });
  const settings = { RUNYARD_RETENTION_RUN_DAYS: 400, RUNYARD_RETENTION_DETAIL_DAYS: 90 };
  const sweep = (more: Partial<SweepDeps> = {}) =>
    sweepWhenDue({
      db,
      blobs,
      settings,
      registered: registeredRetention,
      log: pino({ level: 'debug' }, { write: (line: string) => void logged.push(line) }),
      signal: new AbortController().signal,
      ...more,
    });

  const night = () => db.query(`UPDATE sweeps SET next_at = now() - interval '1 minute'`);
  const put = async (key: string) => {
    await blobs.put(key, Readable.from([Buffer.from('x')]), { maxBytes: 10 });
    return key;
  };
  const isThere = async (key: string) => (await blobs.stat(key)) !== undefined;
  const isRow = async (table: string, id: string) =>
    (await db.query(`SELECT FROM ${table} WHERE id = $1`, [id])).length > 0;

  async function endedRun(daysAgo: number, more: Partial<NewRun> = {}) {
    const attachment = randomUUIDv7();
    const attachmentKey = await put(`attachments/${attachment}`);
    const id = await test.newRun({
      attachments: [
        {
          id: attachment,
          fileName: 'a',
          mimeType: 'a/b',
          sizeBytes: 1,
          sha256: Buffer.alloc(32),
          content: null,
          blobKey: attachmentKey,
        },
      ],
      ...more,
    });
    const transcriptKey = await put(`transcripts/${id}/${randomUUIDv7()}`);
    await db.query(
      `UPDATE executions SET phase = 'ended', transcript_bytes = 1, transcript_blob = $2 WHERE run_id = $1`,
      [id, transcriptKey],
    );
    await db.query(
      `INSERT INTO conversation_events (run_id, seq, execution_id, event)
     SELECT $1, n, $1, '{"type":"transcript","line":"{}"}' FROM generate_series(2, 5) AS n`,
      [id],
    );
    await db.query(
      `UPDATE runs SET state = 'SUCCEEDED', event_seq = 5, ended_at = now() - make_interval(days => $2) WHERE id = $1`,
      [id, daysAgo],
    );
    return { id, attachmentKey, transcriptKey };
  }
  async function manyOldRuns(): Promise<string[]> {
    const ids = Array.from({ length: 105 }, randomUUIDv7);
    await db.query(
      `WITH request AS (INSERT INTO run_requests (run_id, prompt) SELECT unnest($1::uuid[]), '')
     INSERT INTO runs (id, team_id, state, title, model_id, harness, source, creator_kind, creator_uid, executor_kind,
       executor_uid, conversation_id, current_execution_id, ended_at)
     SELECT id, $2, 'SUCCEEDED', '', 'runbook', 'oz', 'API', 'user', 'u', 'user', 'u', id, id,
       now() - interval '500 days' + place * interval '1 second'
     FROM unnest($1::uuid[]) WITH ORDINALITY AS old(id, place)`,
      [ids, test.teamId],
    );
    return ids;
  }
  const eventsOf = async (runId: string) =>
    (await db.query('SELECT FROM conversation_events WHERE run_id = $1', [runId])).length;

  beforeEach(async () => {
    logged.length = 0;
    await sweep();
    await night();
  });
  return { test, db, blobs, logged, sweep, night, put, isThere, isRow, endedRun, manyOldRuns, eventsOf };
}
