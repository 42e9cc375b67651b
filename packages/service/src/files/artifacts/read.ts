import type { ArtifactItem } from '@runyard/contract/artifacts';
import type { ArtifactType } from '@runyard/contract/states';
import type { Queryable, Statement } from '../../store/database/database.ts';
import { isUuid } from '../../store/database/uuid.ts';

/** An artifact that readers may know of. */
export interface StoredArtifact {
  readonly id: string;
  readonly teamId: string;
  readonly type: ArtifactType;
  readonly data: Record<string, unknown>;
  readonly isPublic: boolean;
  readonly blobKey: string | null;
  readonly sizeBytes: number | null;
  readonly createdAt: string;
}

const columns = `id, team_id AS "teamId", run_id AS "runId", artifact_type AS type, is_public AS "isPublic", blob_key AS "blobKey",
  size_bytes AS "sizeBytes", created_at AS "createdAt"`;

const readOne: Statement = {
  name: 'read_artifact',
  text: `SELECT ${columns}, data FROM artifacts WHERE id = $1 AND is_ready`,
};

/** A plan's text is read on its own. */
const readOfRuns: Statement = {
  name: 'read_artifacts_of_runs',
  text: `SELECT ${columns}, data - 'content' AS data FROM artifacts WHERE run_id = ANY($1::uuid[]) AND is_ready ORDER BY created_at, id`,
};

/** Null: no such artifact, or its bytes have not arrived. Whether the caller may see it is the caller's to check. */
export async function findArtifact(db: Queryable, artifactUid: string): Promise<StoredArtifact | null> {
  if (!isUuid(artifactUid)) return null;
  const [row] = await db.query<StoredArtifact>(readOne, [artifactUid]);
  return row ?? null;
}

/** Artifacts of each run, oldest first, in one query. */
export async function readArtifactItems(
  db: Queryable,
  runIds: readonly string[],
): Promise<Map<string, ArtifactItem[]>> {
  const items = new Map<string, ArtifactItem[]>();
  for (const row of await db.query<StoredArtifact & { runId: string }>(readOfRuns, [runIds])) {
    const ofRun = items.get(row.runId) ?? [];
    ofRun.push(toItem(row));
    items.set(row.runId, ofRun);
  }
  return items;
}

function toItem(row: StoredArtifact): ArtifactItem {
  const own = row.type === 'PLAN' || row.type === 'FILE' || row.type === 'SCREENSHOT' ? { artifact_uid: row.id } : {};
  const size = row.type === 'FILE' && row.sizeBytes !== null ? { size_bytes: row.sizeBytes } : {};
  // The members were checked by type as they were reported.
  return { artifact_type: row.type, created_at: row.createdAt, data: { ...row.data, ...own, ...size } } as ArtifactItem;
}
