import { randomUUIDv7 } from 'node:crypto';
import type { UploadSnapshot } from '@runyard/contract/runs/handoff';
import type { BlobStore } from '../../../platform/store/blobs/blobs.ts';
import type { Database, Queryable } from '../../../platform/store/database/database.ts';
import { defineStatement, text } from '../../../platform/store/database/statement.ts';
import { withoutSecrets } from '../../../team/redaction/agent-text.ts';
import type { ExecutionDeps } from '../../executions/deps.ts';
import { lockAttempt } from '../../executions/run-tokens/attempt.ts';
import type { RunSession } from '../../executions/run-tokens/sessions.ts';
import { readTeamRoom, type StorageRefusal, teamFull } from '../stored-bytes.ts';

const readKeys = defineStatement({
  name: 'read_keys_of_replaced_handoffs',
  text: `
    SELECT f.blob_key AS key FROM snapshots s JOIN snapshot_files f ON f.snapshot_id = s.id
    WHERE s.execution_id = $1 AND s.id <> $2 AND ($3 OR NOT s.is_ready) AND f.blob_key IS NOT NULL`,
  row: { key: text() },
});

const deleteRows = defineStatement({
  name: 'delete_replaced_handoffs',
  text: 'DELETE FROM snapshots WHERE execution_id = $1 AND id <> $2 AND ($3 OR NOT is_ready)',
  row: {},
});

/**
 * Deletes handoffs of the execution. The transaction has locked the run's row. Returns the keys of blobs; the caller deletes these blobs
 * after the commit.
 */
export async function deleteReplacedHandoffs(
  tx: Queryable,
  executionId: string,
  { except, which }: { readonly except: string; readonly which: 'all' | 'not_ready' },
): Promise<string[]> {
  const values = [executionId, except, which === 'all'];
  const keys = await tx.query(readKeys, values);
  await tx.query(deleteRows, values);
  return keys.map(({ key }) => key);
}

/** A handoff without files is ready at once. */
const insertRows = defineStatement({
  name: 'insert_handoff',
  text: `
    WITH handoff AS (
      INSERT INTO snapshots (id, run_id, execution_id, turn, is_ready) VALUES ($1, $2, $3, $4, $5 = '[]'::jsonb) RETURNING id
    )
    INSERT INTO snapshot_files (id, snapshot_id, position, filename, mime_type, size_bytes)
    SELECT f.id, handoff.id, f.position, f.filename, f.mime_type, f.size_bytes
    FROM handoff, jsonb_to_recordset($5::jsonb) AS f(id uuid, position integer, filename text, mime_type text, size_bytes bigint)`,
  row: {},
});

/**
 * Writes the rows of a handoff whose bytes are uploaded later, and deletes an earlier, unfinished handoff of the execution. Returns the ids
 * of the files in the order of the request, or a refusal (413) if the team's storage limit does not allow the files. Throws `AttemptOver`.
 */
export async function beginHandoff(
  deps: {
    readonly db: Database;
    readonly blobs: BlobStore;
    readonly executionDeps: Pick<ExecutionDeps, 'db' | 'limits' | 'secrets' | 'vault'>;
  },
  session: RunSession,
  { turn, files }: UploadSnapshot,
): Promise<readonly string[] | StorageRefusal> {
  const announced = files.reduce((sum, file) => sum + file.size_bytes, 0);
  const room = await readTeamRoom(deps.executionDeps, undefined, session.teamId);
  if (announced > room.files) return teamFull(deps.executionDeps, room.stored);
  room.take(announced);
  const id = randomUUIDv7();
  const rows = withoutSecrets(deps.executionDeps, session, files).map((file, position) => ({
    ...file,
    id: randomUUIDv7(),
    position,
  }));
  const unused = await deps.db.transaction(async (tx) => {
    await lockAttempt(tx, session);
    const which = files.length === 0 ? 'all' : 'not_ready';
    const keys = await deleteReplacedHandoffs(tx, session.executionId, { except: id, which });
    await tx.query(insertRows, [id, session.runId, session.executionId, turn, JSON.stringify(rows)]);
    return keys;
  });
  for (const key of unused) await deps.blobs.delete(key);
  return rows.map((row) => row.id);
}
