import type { ArtifactType } from '@runyard/contract/runs/states';
import type { Database } from '../../../platform/store/database/database.ts';
import { defineStatement, text } from '../../../platform/store/database/statement.ts';
import { isUuid } from '../../../platform/store/database/uuid.ts';
import { type Author, recordChange } from '../../../team/access/audit/record.ts';

/** Outcome of sharing. `not_found` 404; `nothing_to_read` 400: the artifact is a link and not a file, so there is nothing to share. */
export type ShareOutcome =
  | { readonly kind: 'done'; readonly type: ArtifactType }
  | { readonly kind: 'not_found' }
  | { readonly kind: 'nothing_to_read'; readonly type: ArtifactType };

const setPublic = defineStatement({
  name: 'set_artifact_public',
  text: `
    UPDATE artifacts SET is_public = $3 AND artifact_type IN ('FILE', 'SCREENSHOT', 'PLAN')
    WHERE id = $1 AND team_id = $2 AND is_ready RETURNING artifact_type AS type`,
  row: { type: text<ArtifactType>() },
});

/** Sets whether everyone or only the team may read an artifact of the team. */
export async function shareArtifact(
  db: Database,
  by: Author,
  artifactUid: string,
  isPublic: boolean,
): Promise<ShareOutcome> {
  if (!isUuid(artifactUid)) return { kind: 'not_found' };
  return await db.transaction(async (tx): Promise<ShareOutcome> => {
    const [row] = await tx.query(setPublic, [artifactUid, by.teamId, isPublic]);
    if (!row) return { kind: 'not_found' };
    const { type } = row;
    if (isPublic && (type === 'PULL_REQUEST' || type === 'EXTERNAL_REFERENCE'))
      return { kind: 'nothing_to_read', type };
    await recordChange(tx, by, {
      action: isPublic ? 'artifact.share' : 'artifact.unshare',
      subject: { type: 'artifact', uid: artifactUid },
      after: { is_public: isPublic },
      ...(isPublic ? {} : { endsAccess: true }),
    });
    return { kind: 'done', type };
  });
}
