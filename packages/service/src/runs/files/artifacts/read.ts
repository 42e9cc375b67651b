import type { ArtifactItem, PullRequestActivity, PullRequestState } from '@runyard/contract/runs/artifacts';
import type { ArtifactType } from '@runyard/contract/runs/states';
import type { Queryable } from '../../../platform/store/database/database.ts';
import {
  boolean,
  bytes,
  defineStatement,
  integer,
  json,
  nullable,
  type RowOf,
  text,
  timestamp,
  uuid,
} from '../../../platform/store/database/statement.ts';
import { isUuid } from '../../../platform/store/database/uuid.ts';
import { readActivity } from './read-pull-requests.ts';

/** An artifact that readers can see: a link, or a file whose bytes have arrived. */
export interface StoredArtifact {
  readonly id: string;
  readonly teamId: string;
  readonly runId: string;
  readonly type: ArtifactType;
  readonly data: Record<string, unknown>;
  readonly isPublic: boolean;
  readonly blobKey: string | null;
  readonly sizeBytes: number | null;
  readonly sha256: Buffer | null;
  readonly createdAt: string;
  /** Null: it is no pull request, or no event of it was seen. */
  readonly pullRequestState: PullRequestState | null;
  readonly canonicalUrl: string | null;
}

const columns = `id, team_id AS "teamId", run_id AS "runId", artifact_type AS type, is_public AS "isPublic", blob_key AS "blobKey",
  size_bytes AS "sizeBytes", sha256, created_at AS "createdAt", canonical_url AS "canonicalUrl",
  (SELECT p.state FROM pull_requests p WHERE p.team_id = artifacts.team_id AND p.url = artifacts.canonical_url) AS "pullRequestState"`;

const row = {
  id: uuid,
  teamId: uuid,
  runId: uuid,
  type: text<ArtifactType>(),
  isPublic: boolean,
  blobKey: nullable(text()),
  sizeBytes: nullable(integer),
  sha256: nullable(bytes),
  createdAt: timestamp,
  canonicalUrl: nullable(text()),
  pullRequestState: nullable(text<PullRequestState>()),
  data: json<Record<string, unknown>>(),
};

const readOne = defineStatement({
  name: 'read_artifact',
  text: `SELECT ${columns}, data FROM artifacts WHERE id = $1 AND is_ready`,
  row,
});

const readScreenshot = defineStatement({
  name: 'read_screenshot_of_conversation',
  text: `
    SELECT a.id FROM artifacts a JOIN runs r ON r.id = a.run_id
    WHERE a.id = $3 AND a.artifact_type = 'SCREENSHOT' AND a.is_ready AND r.team_id = $1 AND r.conversation_id = $2`,
  row: { id: uuid },
});

/** Returns whether a run of this conversation of the team has this screenshot. The ids may be any text. */
export async function hasScreenshot(
  db: Queryable,
  teamId: string,
  { conversationId, artifactUid }: { readonly conversationId: string; readonly artifactUid: string },
): Promise<boolean> {
  if (!isUuid(conversationId) || !isUuid(artifactUid)) return false;
  return (await db.query(readScreenshot, [teamId, conversationId, artifactUid])).length > 0;
}

const readSource = defineStatement({
  name: 'read_source_of_artifact',
  text: `
    SELECT a.run_id AS "runId", coalesce((
        SELECT jsonb_agg(p.data->>'url' ORDER BY p.created_at, p.id) FROM artifacts p
        WHERE p.run_id = a.run_id AND p.artifact_type = 'PULL_REQUEST' AND p.is_ready
      ), '[]') AS "pullRequestUrls"
    FROM artifacts a WHERE a.id = $1`,
  row: { runId: uuid, pullRequestUrls: json<string[]>() },
});

/** Returns the run that produced an artifact, and the addresses of the run's pull requests; undefined if the artifact was deleted. */
export async function findSource(db: Queryable, artifactUid: string): Promise<RowOf<typeof readSource> | undefined> {
  const [source] = await db.query(readSource, [artifactUid]);
  return source;
}

/** Leaves out the text of plans, because a text may have 2 MB. */
const readOfRuns = defineStatement({
  name: 'read_artifacts_of_runs',
  text: `SELECT ${columns}, data - 'content' AS data FROM artifacts WHERE run_id = ANY($1::uuid[]) AND is_ready ORDER BY created_at, id`,
  row,
});

/** Leaves out the text of plans and the metadata of references, because both can be long. */
const readFirstOfRuns = defineStatement({
  name: 'read_first_artifacts_of_runs',
  text: `
    SELECT a.* FROM unnest($1::uuid[]) AS asked (id) CROSS JOIN LATERAL (
      SELECT ${columns}, data - 'content' - 'metadata' AS data FROM artifacts
      WHERE run_id = asked.id AND is_ready ORDER BY artifacts.created_at, artifacts.id LIMIT $2
    ) a`,
  row,
});

/** Leaves out plans. `n`: position of the artifact in its group; the newest artifact has the position 1. */
const readOutputs = defineStatement({
  name: 'read_newest_outputs_of_groups',
  text: `
    SELECT * FROM (
      SELECT ${columns}, data, g.name AS "group", row_number() OVER (PARTITION BY g.name ORDER BY created_at DESC, id DESC) AS n
      FROM unnest($1::text[], $2::uuid[]) AS g(name, of_run) JOIN artifacts ON run_id = g.of_run AND is_ready AND artifact_type <> 'PLAN'
    ) o WHERE n <= $3 ORDER BY n`,
  row: { ...row, group: text(), n: integer },
});

/**
 * Reads an artifact of any team; null if there is no artifact with this id, or if its bytes have not arrived. The caller checks who may
 * read the artifact.
 */
export async function findArtifact(db: Queryable, artifactUid: string): Promise<StoredArtifact | null> {
  if (!isUuid(artifactUid)) return null;
  const [artifact] = await db.query(readOne, [artifactUid]);
  return artifact ?? null;
}

/** Reads the artifacts of the runs, with what became of their pull requests. Returns the artifacts of each run, oldest first. */
export async function readArtifactItems(
  db: Queryable,
  runIds: readonly string[],
): Promise<Map<string, ArtifactItem[]>> {
  const artifacts = await db.query(readOfRuns, [runIds]);
  const activityOf = await readActivity(
    db,
    artifacts.filter(({ pullRequestState }) => pullRequestState !== null),
  );
  return itemsByRun(artifacts, activityOf);
}

/** Reads the first `limit` artifacts of each run in one query. Returns the artifacts of each run, oldest first. */
export async function readFirstArtifactItems(
  db: Queryable,
  runIds: readonly string[],
  limit: number,
): Promise<Map<string, ArtifactItem[]>> {
  return itemsByRun(await db.query(readFirstOfRuns, [runIds, limit]));
}

function itemsByRun(
  artifacts: readonly StoredArtifact[],
  activityOf: (artifact: StoredArtifact) => PullRequestActivity | undefined = () => undefined,
): Map<string, ArtifactItem[]> {
  const items = new Map<string, ArtifactItem[]>();
  for (const artifact of artifacts) {
    const ofRun = items.get(artifact.runId) ?? [];
    ofRun.push(toItem(artifact, activityOf(artifact)));
    items.set(artifact.runId, ofRun);
  }
  return items;
}

/** A run, and the name of the group in which its artifacts are listed. */
interface RunInGroup {
  readonly group: string;
  readonly runId: string;
}

/** Reads the artifacts of the runs, without plans, in one query. Returns at most `limit` artifacts of each group, newest first. */
export async function readNewestOutputs(
  db: Queryable,
  runs: readonly RunInGroup[],
  limit: number,
): Promise<Map<string, ArtifactItem[]>> {
  const outputs = new Map<string, ArtifactItem[]>();
  const values = [runs.map(({ group }) => group), runs.map(({ runId }) => runId), limit];
  for (const artifact of await db.query(readOutputs, values)) {
    const ofGroup = outputs.get(artifact.group) ?? [];
    ofGroup.push(toItem(artifact));
    outputs.set(artifact.group, ofGroup);
  }
  return outputs;
}

function toItem(
  { id, type, data, createdAt, sizeBytes, pullRequestState }: StoredArtifact,
  activity?: PullRequestActivity,
): ArtifactItem {
  const uid = type === 'PLAN' || type === 'FILE' || type === 'SCREENSHOT' ? { artifact_uid: id } : {};
  const size = type === 'FILE' && sizeBytes !== null ? { size_bytes: sizeBytes } : {};
  const status =
    type === 'PULL_REQUEST' ? { status: pullRequestState ?? 'unknown', ...(activity ? { activity } : {}) } : {};
  // The data already has the right shape for its type, because it was checked when the agent reported it.
  return { artifact_type: type, created_at: createdAt, data: { ...data, ...uid, ...size, ...status } } as ArtifactItem;
}
