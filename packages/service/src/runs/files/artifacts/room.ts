/** Limits the bytes of an artifact, of all artifacts of a run, and of everything that a team stores. */
import type { ArtifactType } from '@runyard/contract/runs/states';
import type { Settings } from '@runyard/contract/settings/settings';
import { formatBytes, overLimit } from '@runyard/contract/wire/byte-size';
import type { Queryable } from '../../../platform/store/database/database.ts';
import { defineStatement, numeric } from '../../../platform/store/database/statement.ts';
import type { ExecutionDeps } from '../../executions/deps.ts';
import type { RunSession } from '../../executions/run-tokens/sessions.ts';
import { bytesOfTeam, type StorageRefusal, teamFull } from '../stored-bytes.ts';

export interface RoomDeps {
  readonly settings: Pick<Settings, 'RUNYARD_ARTIFACT_MB' | 'RUNYARD_RUN_ARTIFACTS_MB'>;
  readonly executionDeps: Pick<ExecutionDeps, 'limits'>;
}

/** Bytes that are stored already: by the other artifacts of the run, and by the team. */
export interface StoredOfRun {
  readonly others: number;
  readonly stored: number;
}

/** The most bytes that an artifact, the artifacts of a run, and a team may have. */
export const mostBytes = ({ settings, executionDeps }: RoomDeps) => ({
  artifact: settings.RUNYARD_ARTIFACT_MB * 1024 * 1024,
  run: settings.RUNYARD_RUN_ARTIFACTS_MB * 1024 * 1024,
  team: executionDeps.limits.teamBytes,
});

/** Returns the largest size that a new artifact may have. */
export function roomOfArtifact(deps: RoomDeps, { others, stored }: StoredOfRun): number {
  const most = mostBytes(deps);
  return Math.max(0, Math.min(most.artifact, most.run - others, most.team - stored));
}

/**
 * Returns the refusal of an artifact of this size: the size, the limit, and the setting that raises it. Returns undefined if there is room.
 * `isMore`: the artifact has more bytes than this, and their number is not known.
 */
export function refuseSize(
  deps: RoomDeps,
  { others, stored }: StoredOfRun,
  bytes: number,
  { isMore = false }: { readonly isMore?: boolean } = {},
): StorageRefusal | undefined {
  const most = mostBytes(deps);
  const full = (detail: string) => ({ kind: 'storage_full' as const, detail });
  if (bytes > most.artifact)
    return full(
      `The artifact has ${isMore ? `more than ${formatBytes(most.artifact)}` : overLimit(bytes, most.artifact)} (RUNYARD_ARTIFACT_MB). Divide the file, or ask the operator to raise the setting.`,
    );
  const size = `The artifact has ${isMore ? 'more than ' : ''}${formatBytes(bytes)}`;
  if (others + bytes > most.run)
    return full(
      `${size}, and the other artifacts of the run have ${formatBytes(others)}; together they may have ${formatBytes(most.run)} (RUNYARD_RUN_ARTIFACTS_MB). Delete some, or ask the operator to raise the setting.`,
    );
  return stored + bytes > most.team ? teamFull(deps.executionDeps, stored, `${size}. `) : undefined;
}

const readRoom = defineStatement({
  name: 'read_room_of_new_artifact',
  text: `SELECT (SELECT coalesce(sum(size_bytes), 0) FROM artifacts WHERE run_id = $1) AS others, ${bytesOfTeam('$2')} AS stored`,
  row: { others: numeric, stored: numeric },
});

/** Returns the refusal of a file whose stated size is too large, so that its agent does not send the bytes in vain. */
export async function refuseStatedSize(
  deps: RoomDeps,
  tx: Queryable,
  { runId, teamId }: Pick<RunSession, 'runId' | 'teamId'>,
  { artifact_type: type, data }: { readonly artifact_type: ArtifactType; readonly data: Record<string, unknown> },
): Promise<StorageRefusal | undefined> {
  const { size_bytes: bytes } = data;
  if (!(type === 'FILE' || type === 'SCREENSHOT') || typeof bytes !== 'number') return undefined;
  const [row] = await tx.query(readRoom, [runId, teamId]);
  return refuseSize(deps, { others: Number(row?.others), stored: Number(row?.stored) }, bytes);
}
