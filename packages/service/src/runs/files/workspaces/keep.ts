/**
 * Stores the workspace of a sandbox for the next sandbox of its run. The bytes come from untrusted code: the service stores them and never reads
 * into them.
 */
import { randomUUIDv7 } from 'node:crypto';
import type { BlobStore } from '../../../platform/store/blobs/blobs.ts';
import type { Database, Queryable } from '../../../platform/store/database/database.ts';
import { type Attempt, ofAttempt } from '../../executions/run-tokens/attempt.ts';
import { type ArchiveMoment, setWorkspaceArchive, type WorkspaceArchive } from '../../executions/saved-state.ts';

interface KeepDeps {
  readonly db: Database;
  readonly blobs: BlobStore;
}

/**
 * Stores an archive of the workspace. Deletes it again if an archive from a later point of the execution is already stored. Throws
 * `AttemptOver`.
 */
export async function keepWorkspace(
  deps: KeepDeps,
  attempt: Attempt,
  moment: ArchiveMoment,
  archive: {
    readonly body: AsyncIterable<Uint8Array>;
    readonly maxBytes: number;
    readonly sessionId?: string | undefined;
  },
): Promise<'stored' | 'too_large'> {
  const key = `workspaces/${attempt.executionId}/${randomUUIDv7()}`;
  const put = await deps.blobs.put(key, archive.body, { maxBytes: archive.maxBytes });
  if (put.outcome === 'too_large') return 'too_large';
  await record(deps, attempt, moment, { ...put, key, sessionId: archive.sessionId });
  return 'stored';
}

/** Records that the folders workspace and home were empty. Throws `AttemptOver`. */
export async function keepEmptyWorkspace(deps: KeepDeps, attempt: Attempt, moment: ArchiveMoment): Promise<void> {
  await record(deps, attempt, moment, null);
}

/**
 * Like `keepEmptyWorkspace`, in the caller's transaction, which has locked the attempt. Returns the keys of blobs to delete after the
 * commit.
 */
export async function keepEmptyWorkspaceWithin(
  tx: Queryable,
  attempt: Attempt,
  moment: ArchiveMoment,
): Promise<readonly string[]> {
  return (await setWorkspaceArchive(tx, attempt.executionId, moment, null)) ?? [];
}

async function record(
  deps: KeepDeps,
  attempt: Attempt,
  moment: ArchiveMoment,
  archive: WorkspaceArchive | null,
): Promise<void> {
  const unused = await ofAttempt(deps, attempt, archive?.key, (tx) =>
    setWorkspaceArchive(tx, attempt.executionId, moment, archive),
  );
  for (const key of unused ?? (archive ? [archive.key] : [])) await deps.blobs.delete(key);
}
