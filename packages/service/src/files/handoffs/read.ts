import type { Queryable, Statement } from '../../store/database/database.ts';
import { isUuid } from '../../store/database/uuid.ts';

export interface SnapshotFile {
  readonly id: string;
  readonly filename: string;
  readonly mimeType: string | null;
  readonly sizeBytes: number;
  readonly blobKey: string;
}

const columns = `f.id, f.filename, f.mime_type AS "mimeType", f.size_bytes AS "sizeBytes", f.blob_key AS "blobKey"`;

const readLatest: Statement = {
  name: 'read_latest_snapshot',
  text: `
    SELECT ${columns} FROM snapshot_files f WHERE f.snapshot_id = (
      SELECT s.id FROM snapshots s JOIN executions e ON e.id = s.execution_id
      WHERE s.run_id = $1 AND s.is_ready ORDER BY e.number DESC LIMIT 1)
    ORDER BY f.position`,
};

/** Files of the snapshot of the run's latest execution that left one. */
export async function readLatestSnapshot(db: Queryable, runId: string): Promise<SnapshotFile[]> {
  return await db.query(readLatest, [runId]);
}

const readOne: Statement = {
  name: 'read_ready_snapshot_file',
  text: `SELECT ${columns} FROM snapshot_files f JOIN snapshots s ON s.id = f.snapshot_id WHERE f.id = $1 AND s.is_ready`,
};

/** A file of a whole snapshot; null: there is none. */
export async function findSnapshotFile(db: Queryable, fileId: string): Promise<SnapshotFile | null> {
  const [file] = isUuid(fileId) ? await db.query<SnapshotFile>(readOne, [fileId]) : [];
  return file ?? null;
}
