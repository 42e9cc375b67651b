import type { ArtifactItem } from '@runyard/contract/artifacts';
import type { ArtifactType } from '@runyard/contract/states';
import type { Queryable } from '../../../platform/store/database/database.ts';
import {
  boolean,
  defineStatement,
  integer,
  json,
  nullable,
  text,
  timestamp,
  uuid,
} from '../../../platform/store/database/statement.ts';
import { isUuid } from '../../../platform/store/database/uuid.ts';

/** An artifact that readers can see: a link, or a file whose bytes have arrived. */
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

const row = {
  id: uuid,
  teamId: uuid,
  runId: uuid,
  type: text<ArtifactType>(),
  isPublic: boolean,
  blobKey: nullable(text()),
  sizeBytes: nullable(integer),
  createdAt: timestamp,
  data: json<Record<string, unknown>>(),
};

const readOne = defineStatement({
  name: 'read_artifact',
  text: `SELECT ${columns}, data FROM artifacts WHERE id = $1 AND is_ready`,
  row,
});

/** Leaves out the text of plans, which may have 2 MB. */
const readOfRuns = defineStatement({
  name: 'read_artifacts_of_runs',
  text: `SELECT ${columns}, data - 'content' AS data FROM artifacts WHERE run_id = ANY($1::uuid[]) AND is_ready ORDER BY created_at, id`,
  row,
});

/** Reads an artifact of any team; null: there is none, or its bytes have not arrived. The caller checks who may see it. */
export async function findArtifact(db: Queryable, artifactUid: string): Promise<StoredArtifact | null> {
  if (!isUuid(artifactUid)) return null;
  const [artifact] = await db.query(readOne, [artifactUid]);
  return artifact ?? null;
}

/** Reads the artifacts of the runs, oldest first, by run, in one query. */
export async function readArtifactItems(
  db: Queryable,
  runIds: readonly string[],
): Promise<Map<string, ArtifactItem[]>> {
  const items = new Map<string, ArtifactItem[]>();
  for (const artifact of await db.query(readOfRuns, [runIds])) {
    const ofRun = items.get(artifact.runId) ?? [];
    ofRun.push(toItem(artifact));
    items.set(artifact.runId, ofRun);
  }
  return items;
}

function toItem({ id, type, data, createdAt, sizeBytes }: StoredArtifact): ArtifactItem {
  const uid = type === 'PLAN' || type === 'FILE' || type === 'SCREENSHOT' ? { artifact_uid: id } : {};
  const size = type === 'FILE' && sizeBytes !== null ? { size_bytes: sizeBytes } : {};
  const status = type === 'PULL_REQUEST' ? { status: 'unknown' } : {};
  // The data was checked for its type when it was reported.
  return { artifact_type: type, created_at: createdAt, data: { ...data, ...uid, ...size, ...status } } as ArtifactItem;
}
