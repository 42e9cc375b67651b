import type { Queryable } from '../../../platform/store/database/database.ts';
import { defineStatement, nullable, text } from '../../../platform/store/database/statement.ts';

/** The stored archive of workspace and home. */
export interface WorkspaceArchive {
  readonly key: string;
  readonly sizeBytes: number;
  readonly sha256: Buffer;
  /** Session of the harness, if the harness can load one in another sandbox. */
  readonly sessionId?: string | undefined;
}

/** When an archive was made. */
export interface ArchiveMoment {
  readonly turn: number;
  /** Number of the checkpoint in the middle of the turn; undefined: the end of the turn. */
  readonly checkpoint?: number | undefined;
}

/** A further execution may begin with the archive of this execution, or with the one that this execution began with. */
const setAndForget = defineStatement({
  name: 'set_workspace_archive',
  text: `
    WITH own AS (
      UPDATE executions e SET workspace_turn = $2, workspace_blob = $3, workspace_bytes = $4, workspace_sha256 = $5, workspace_session = $6,
        workspace_at = clock_timestamp(), workspace_is_checkpoint = $7::int IS NOT NULL,
        workspace_seq = CASE WHEN $7::int IS NULL THEN (SELECT event_seq FROM runs WHERE id = e.run_id) ELSE e.checkpoint_seq END,
        workspace_done = CASE WHEN $7::int IS NULL THEN 0 ELSE e.checkpoint_done END
      FROM executions before
      WHERE e.id = $1 AND before.id = $1 AND coalesce(e.workspace_turn, 0) <= $2 
        AND ($7::int IS NULL OR e.checkpoint = $7 AND (e.workspace_turn IS DISTINCT FROM $2 OR e.workspace_is_checkpoint))
      RETURNING e.run_id, coalesce(e.resumes, e.continues) AS continues, before.workspace_blob AS blob
    ), needless AS (
      SELECT o.id, o.workspace_blob AS blob FROM executions o JOIN own ON o.run_id = own.run_id
      WHERE o.workspace_turn IS NOT NULL AND o.number < (
        SELECT max(p.number) FROM executions p
        WHERE p.run_id = own.run_id AND p.number <= own.continues AND p.workspace_turn IS NOT NULL)
      FOR UPDATE OF o
    ), forgotten AS (
      UPDATE executions o SET workspace_turn = NULL, workspace_blob = NULL, workspace_bytes = NULL, workspace_sha256 = NULL,
        workspace_session = NULL
      FROM needless WHERE o.id = needless.id RETURNING needless.blob
    )
    SELECT blob FROM own UNION ALL SELECT blob FROM forgotten`,
  row: { blob: nullable(text()) },
});

/**
 * Sets the archive that the execution left after the turn, or at a checkpoint in it (null: workspace and home were empty), and removes
 * archives of the run that no further execution begins with. Returns the keys of the blobs that no row names any more. Null: the
 * execution has an archive of a later moment, or has begun another checkpoint, and nothing was changed.
 */
export async function setWorkspaceArchive(
  tx: Queryable,
  executionId: string,
  { turn, checkpoint }: ArchiveMoment,
  archive: WorkspaceArchive | null,
): Promise<string[] | null> {
  const rows = await tx.query(setAndForget, [
    executionId,
    turn,
    archive?.key ?? null,
    archive?.sizeBytes ?? null,
    archive?.sha256 ?? null,
    archive?.sessionId ?? null,
    checkpoint ?? null,
  ]);
  return rows.length === 0 ? null : rows.flatMap(({ blob }) => blob ?? []);
}
