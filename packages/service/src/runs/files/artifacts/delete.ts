import type { Logger } from 'pino';
import type { BlobStore } from '../../../platform/store/blobs/blobs.ts';
import type { Database } from '../../../platform/store/database/database.ts';
import { defineStatement, nullable, text, uuid } from '../../../platform/store/database/statement.ts';
import { isUuid } from '../../../platform/store/database/uuid.ts';
import { type Author, recordChange } from '../../../team/access/audit/record.ts';

const deleteRow = defineStatement({
  name: 'delete_artifact',
  text: 'DELETE FROM artifacts WHERE id = $1 AND team_id = $2 RETURNING blob_key AS "blobKey", artifact_type, run_id',
  row: { blobKey: nullable(text()), artifact_type: text(), run_id: uuid },
});

/**
 * Deletes an artifact of the team; returns false if there is no such artifact. Deletes the row before the bytes, so that no reader looks
 * for deleted bytes. If the process crashes between the two steps, the nightly sweep deletes the bytes.
 */
export async function deleteArtifact(
  deps: { readonly db: Database; readonly blobs: BlobStore; readonly log: Logger },
  by: Author,
  artifactUid: string,
): Promise<boolean> {
  if (!isUuid(artifactUid)) return false;
  const row = await deps.db.transaction(async (tx) => {
    const [gone] = await tx.query(deleteRow, [artifactUid, by.teamId]);
    if (!gone) return undefined;
    await recordChange(tx, by, {
      action: 'artifact.delete',
      subject: { type: 'artifact', uid: artifactUid },
      before: { artifact_type: gone.artifact_type, run_id: gone.run_id },
      endsAccess: true,
    });
    return gone;
  });
  if (!row) return false;
  const { blobKey } = row;
  if (blobKey !== null) {
    await deps.blobs.delete(blobKey).catch((error: unknown) => {
      deps.log.warn({ err: error, blob_key: blobKey }, 'the bytes of a deleted artifact are left to the nightly sweep');
    });
  }
  return true;
}
