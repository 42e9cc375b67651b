/** What a sandbox leaves to the next one of its run. The bytes were made by code that nobody trusts: the service stores them and looks into none. */
import { randomUUIDv7 } from 'node:crypto';
import { type Attempt, ofAttempt } from '../../executions/run-tokens/attempt.ts';
import type { BlobStore } from '../../store/blobs/blobs.ts';
import type { Database, Statement } from '../../store/database/database.ts';

/** Keeps at most what a further execution may begin with: of this execution, and what it began with itself. */
const keepBlob: Statement = {
  name: 'keep_workspace',
  text: `
    WITH own AS (
      UPDATE executions e SET workspace_turn = $2, workspace_blob = $3, workspace_bytes = $4, workspace_sha256 = $5, workspace_session = $6
      FROM executions before
      WHERE e.id = $1 AND before.id = $1 AND coalesce(e.workspace_turn, 0) <= $2
      RETURNING e.run_id, e.continues, before.workspace_blob AS blob
    ), needless AS (
      SELECT o.id, o.workspace_blob AS blob FROM executions o JOIN own ON o.run_id = own.run_id
      WHERE o.workspace_turn IS NOT NULL AND o.number < (
        SELECT max(p.number) FROM executions p
        WHERE p.run_id = own.run_id AND p.number <= own.continues AND p.workspace_turn IS NOT NULL)
      FOR UPDATE OF o
    ), forgotten AS (
      UPDATE executions o SET workspace_turn = NULL, workspace_blob = NULL, workspace_bytes = NULL, workspace_sha256 = NULL,
        workspace_session = NULL
      FROM needless WHERE o.id = needless.id RETURNING needless.blob
    )
    SELECT blob FROM own UNION ALL SELECT blob FROM forgotten`,
};

interface KeepDeps {
  readonly db: Database;
  readonly blobs: BlobStore;
}

/** Keeps the archive of the end of a turn; that of an older turn, arriving late, is dropped. Throws `AttemptOver`. */
export async function keepWorkspace(
  deps: KeepDeps,
  attempt: Attempt,
  turn: number,
  archive: {
    readonly body: AsyncIterable<Uint8Array>;
    readonly maxBytes: number;
    readonly sessionId?: string | undefined;
  },
): Promise<'stored' | 'too_large'> {
  const key = `workspaces/${attempt.executionId}/${randomUUIDv7()}`;
  const put = await deps.blobs.put(key, archive.body, { maxBytes: archive.maxBytes });
  if (put.outcome === 'too_large') return 'too_large';
  await record(deps, attempt, turn, { ...put, key, sessionId: archive.sessionId });
  return 'stored';
}

/** The turn ended with nothing in workspace and home. Throws `AttemptOver`. */
export async function keepEmptyWorkspace(deps: KeepDeps, attempt: Attempt, turn: number): Promise<void> {
  await record(deps, attempt, turn, null);
}

async function record(
  deps: KeepDeps,
  attempt: Attempt,
  turn: number,
  archive: {
    readonly key: string;
    readonly sizeBytes: number;
    readonly sha256: Buffer;
    readonly sessionId?: string | undefined;
  } | null,
): Promise<void> {
  const values = [
    attempt.executionId,
    turn,
    archive?.key ?? null,
    archive?.sizeBytes ?? null,
    archive?.sha256 ?? null,
    archive?.sessionId ?? null,
  ];
  const rows = await ofAttempt(deps, attempt, archive?.key, (tx) =>
    tx.query<{ blob: string | null }>(keepBlob, values),
  );
  const unused = rows.length > 0 ? rows.map(({ blob }) => blob) : [archive?.key ?? null];
  for (const key of unused) if (key !== null) await deps.blobs.delete(key);
}
