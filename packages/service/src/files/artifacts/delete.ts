import type { Logger } from 'pino';
import type { BlobStore } from '../../store/blobs/blobs.ts';
import type { Queryable } from '../../store/database/database.ts';
import { defineStatement, nullable, text } from '../../store/database/statement.ts';
import { isUuid } from '../../store/database/uuid.ts';

const deleteRow = defineStatement({
  name: 'delete_artifact',
  text: 'DELETE FROM artifacts WHERE id = $1 AND team_id = $2 RETURNING blob_key AS "blobKey"',
  row: { blobKey: nullable(text()) },
});

/**
 * Deletes an artifact of the team; false: there is none. Deletes the row first, so that no reader finds the bytes any
 * more. The nightly sweep deletes bytes that are left after a crash.
 */
export async function deleteArtifact(
  deps: { readonly db: Queryable; readonly blobs: BlobStore; readonly log: Logger },
  teamId: string,
  artifactUid: string,
): Promise<boolean> {
  if (!isUuid(artifactUid)) return false;
  const [row] = await deps.db.query(deleteRow, [artifactUid, teamId]);
  if (!row) return false;
  const { blobKey } = row;
  if (blobKey !== null) {
    await deps.blobs.delete(blobKey).catch((error: unknown) => {
      deps.log.warn({ err: error, blob_key: blobKey }, 'the bytes of a deleted artifact are left to the nightly sweep');
    });
  }
  return true;
}
