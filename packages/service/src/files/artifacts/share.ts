import type { ArtifactType } from '@runyard/contract/states';
import type { Queryable } from '../../store/database/database.ts';
import { defineStatement, text } from '../../store/database/statement.ts';
import { isUuid } from '../../store/database/uuid.ts';

/** Outcome of sharing. `not_found` 404; `nothing_to_read` 400: the artifact is a link, which the run's list shows. */
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

/** Lets everyone read an artifact of the team, or its team only. */
export async function shareArtifact(
  db: Queryable,
  teamId: string,
  artifactUid: string,
  isPublic: boolean,
): Promise<ShareOutcome> {
  if (!isUuid(artifactUid)) return { kind: 'not_found' };
  const [row] = await db.query(setPublic, [artifactUid, teamId, isPublic]);
  if (!row) return { kind: 'not_found' };
  const isLink = row.type === 'PULL_REQUEST' || row.type === 'EXTERNAL_REFERENCE';
  return isPublic && isLink ? { kind: 'nothing_to_read', type: row.type } : { kind: 'done', type: row.type };
}
