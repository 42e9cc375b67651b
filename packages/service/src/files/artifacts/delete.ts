import type { Logger } from 'pino';
import type { BlobStore } from '../../store/blobs/blobs.ts';
import type { Queryable } from '../../store/database/database.ts';
import { isUuid } from '../../store/database/uuid.ts';

/**
 * Deletes an artifact of the team; false: there is none. The row goes first, and with it everything that leads to the
 * bytes; bytes that a crash leaves behind have no row and are swept with the nightly retention.
 */
export async function deleteArtifact(
  deps: { readonly db: Queryable; readonly blobs: BlobStore; readonly log: Logger },
  teamId: string,
  artifactUid: string,
): Promise<boolean> {
  if (!isUuid(artifactUid)) return false;
  const [row] = await deps.db.query<{ blobKey: string | null }>(
    'DELETE FROM artifacts WHERE id = $1 AND team_id = $2 RETURNING blob_key AS "blobKey"',
    [artifactUid, teamId],
  );
  if (!row) return false;
  const { blobKey } = row;
  if (blobKey !== null) {
    await deps.blobs.delete(blobKey).catch((error: unknown) => {
      deps.log.warn({ err: error, blob_key: blobKey }, 'the bytes of a deleted artifact are left to the nightly sweep');
    });
  }
  return true;
}
