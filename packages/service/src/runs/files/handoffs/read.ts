import type { Queryable } from '../../../platform/store/database/database.ts';
import { defineStatement, integer, nullable, text, uuid } from '../../../platform/store/database/statement.ts';
import { isUuid } from '../../../platform/store/database/uuid.ts';

/** A file of a handoff; the bytes of the file are stored. */
export interface HandoffFile {
  readonly id: string;
  readonly filename: string;
  readonly mimeType: string | null;
  readonly sizeBytes: number;
  readonly blobKey: string;
}

const columns = `f.id, f.filename, f.mime_type AS "mimeType", f.size_bytes AS "sizeBytes", f.blob_key AS "blobKey"`;
/** In a ready handoff, the bytes of all files are stored, so `blobKey` is not null. */
const row = { id: uuid, filename: text(), mimeType: nullable(text()), sizeBytes: integer, blobKey: text() };

const readLatest = defineStatement({
  name: 'read_latest_handoff',
  text: `
    SELECT ${columns} FROM snapshot_files f WHERE f.snapshot_id = (
      SELECT s.id FROM snapshots s JOIN executions e ON e.id = s.execution_id
      WHERE s.run_id = $1 AND s.is_ready ORDER BY e.number DESC LIMIT 1)
    ORDER BY f.position`,
  row,
});

/** Reads the files of the run's newest handoff: the handoff of the latest execution that has one. */
export async function readLatestHandoff(db: Queryable, runId: string): Promise<HandoffFile[]> {
  return await db.query(readLatest, [runId]);
}

const findOfTurn = defineStatement({
  name: 'find_handoff_of_turn',
  text: 'SELECT id FROM snapshots WHERE execution_id = $1 AND turn = $2 AND is_ready',
  row: { id: uuid },
});

/** Returns the id of the ready handoff of a turn; undefined if there is none. */
export async function findSnapshotOfTurn(
  db: Queryable,
  executionId: string,
  turn: number,
): Promise<string | undefined> {
  const [row] = await db.query(findOfTurn, [executionId, turn]);
  return row?.id;
}

const readFiles = defineStatement({
  name: 'read_files_of_handoff',
  text: `SELECT ${columns} FROM snapshot_files f JOIN snapshots s ON s.id = f.snapshot_id WHERE s.id = $1 AND s.is_ready ORDER BY f.position`,
  row,
});

/** Reads the files of a ready handoff; null if it was replaced or deleted. */
export async function readHandoff(db: Queryable, snapshotId: string): Promise<HandoffFile[] | null> {
  const [found] = await db.query(isReady, [snapshotId]);
  return found === undefined ? null : await db.query(readFiles, [snapshotId]);
}

const isReady = defineStatement({
  name: 'find_ready_handoff',
  text: 'SELECT FROM snapshots WHERE id = $1 AND is_ready',
  row: {},
});

const readOne = defineStatement({
  name: 'read_file_of_ready_handoff',
  text: `SELECT ${columns} FROM snapshot_files f JOIN snapshots s ON s.id = f.snapshot_id WHERE f.id = $1 AND s.is_ready`,
  row,
});

const readOfRun = defineStatement({
  name: 'read_file_of_handoff_of_run',
  text: `
    SELECT ${columns} FROM snapshot_files f JOIN snapshots s ON s.id = f.snapshot_id
    WHERE f.id = $1 AND s.is_ready AND (s.run_id = $2 OR s.id = (SELECT k.snapshot_id FROM fresh_checks k WHERE k.run_id = $2))`,
  row,
});

/** Reads a file of a ready handoff of the run, or of the handoff that the run checks; null if there is none with this id. The id may be any text. */
export async function findChangesOfRun(db: Queryable, runId: string, fileId: string): Promise<HandoffFile | null> {
  const [file] = isUuid(fileId) ? await db.query(readOfRun, [fileId, runId]) : [];
  return file ?? null;
}

/** Reads a file of a ready handoff; null if there is none with this id. The id may be any text. */
export async function findHandoffFile(db: Queryable, fileId: string): Promise<HandoffFile | null> {
  const [file] = isUuid(fileId) ? await db.query(readOne, [fileId]) : [];
  return file ?? null;
}
