import { randomUUIDv7 } from 'node:crypto';
import type { UploadSnapshot } from '@runyard/contract/handoff';
import type { Engine } from '../../executions/engine.ts';
import { withoutSecrets } from '../../executions/run-tokens/agent-text.ts';
import { lockAttempt } from '../../executions/run-tokens/attempt.ts';
import type { RunSession } from '../../executions/run-tokens/sessions.ts';
import type { BlobStore } from '../../store/blobs/blobs.ts';
import type { Database, Statement } from '../../store/database/database.ts';
import { deleteSnapshots } from './replace.ts';

const insert: Statement = {
  name: 'insert_snapshot',
  text: `
    WITH snapshot AS (
      INSERT INTO snapshots (id, run_id, execution_id, turn, is_ready) VALUES ($1, $2, $3, $4, $5 = '[]'::jsonb) RETURNING id
    )
    INSERT INTO snapshot_files (id, snapshot_id, position, filename, mime_type, size_bytes)
    SELECT f.id, snapshot.id, f.position, f.filename, f.mime_type, f.size_bytes
    FROM snapshot, jsonb_to_recordset($5::jsonb) AS f(id uuid, position integer, filename text, mime_type text, size_bytes bigint)`,
};

/** Writes the rows of a snapshot whose bytes are to come; gives the ids of its files, in order. One that was begun before is given up. Throws `AttemptOver`. */
export async function beginSnapshot(
  deps: { readonly db: Database; readonly blobs: BlobStore; readonly engine: Pick<Engine, 'secrets'> },
  session: RunSession,
  { turn, files }: UploadSnapshot,
): Promise<string[]> {
  const id = randomUUIDv7();
  const rows = withoutSecrets(deps.engine, session, files).map((file, position) => ({
    ...file,
    id: randomUUIDv7(),
    position,
  }));
  const unused = await deps.db.transaction(async (tx) => {
    await lockAttempt(tx, session);
    const replaced = files.length === 0 ? 'all' : 'not_ready';
    const keys = await deleteSnapshots(tx, session.executionId, { except: id, which: replaced });
    await tx.query(insert, [id, session.runId, session.executionId, turn, JSON.stringify(rows)]);
    return keys;
  });
  for (const key of unused) await deps.blobs.delete(key);
  return rows.map((row) => row.id);
}
