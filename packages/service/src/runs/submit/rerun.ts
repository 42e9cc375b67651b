import type { AmbientAgentConfig } from '@runyard/contract/config';
import type { RerunRequest, RunAgentRequest } from '@runyard/contract/run-request';
import type { StoredAttachment } from '../../files/attachments/stored.ts';
import type { Queryable } from '../../store/database/database.ts';
import { isUuid } from '../../store/database/uuid.ts';

/** A request for the same run again, and the files that came with the first. */
export interface Rerun {
  readonly request: RunAgentRequest;
  readonly attachments: readonly StoredAttachment[];
}

interface RerunRow {
  readonly prompt: string;
  readonly config: AmbientAgentConfig;
  readonly title: string;
  readonly metadata: Record<string, string>;
  readonly mode: RunAgentRequest['mode'] | null;
}

/**
 * What a run of the team was created with, members of `instead` in place of its own; null: there is no such run. It
 * stands alone: neither the conversation nor the parent of the first is its own.
 */
export async function readRerun(
  db: Queryable,
  teamId: string,
  runId: string,
  instead: RerunRequest,
): Promise<Rerun | null> {
  if (!isUuid(runId)) return null;
  const [run] = await db.query<RerunRow>(
    'SELECT prompt, config, title, metadata, mode FROM runs WHERE id = $1 AND team_id = $2',
    [runId, teamId],
  );
  if (!run) return null;
  const attachments = await db.query<StoredAttachment>(
    `SELECT id, file_name AS "fileName", mime_type AS "mimeType", size_bytes AS "sizeBytes", sha256, blob_key AS "blobKey"
     FROM attachments WHERE run_id = $1 AND followup_id IS NULL ORDER BY position`,
    [runId],
  );
  // Another prompt has another first line, which is the title where none is given.
  const title = instead.title ?? (instead.prompt === undefined ? run.title : undefined);
  const request: RunAgentRequest = {
    prompt: instead.prompt ?? run.prompt,
    config: instead.config ?? run.config,
    metadata: instead.metadata ?? run.metadata,
    ...(title === undefined ? {} : { title }),
    ...(run.mode ? { mode: run.mode } : {}),
  };
  return { request, attachments };
}
