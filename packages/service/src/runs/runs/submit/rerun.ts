import type { AmbientAgentConfig } from '@runyard/contract/runs/config';
import type { RerunRequest, RunAgentRequest, RunMode } from '@runyard/contract/runs/run-request';
import type { Queryable } from '../../../platform/store/database/database.ts';
import { defineStatement, json, nullable, text } from '../../../platform/store/database/statement.ts';
import { isUuid } from '../../../platform/store/database/uuid.ts';
import { readAttachmentsOfRequest } from '../../files/attachments/read.ts';
import type { StoredAttachment } from '../../files/attachments/store.ts';

/** A request that repeats a run, and the files of the request that created the run. */
export interface Rerun {
  readonly request: RunAgentRequest;
  readonly attachments: readonly StoredAttachment[];
}

const readRequest = defineStatement({
  name: 'read_request_to_rerun',
  text: 'SELECT prompt, config, title, metadata, mode FROM runs JOIN run_requests ON run_id = id WHERE id = $1 AND team_id = $2',
  row: {
    prompt: text(),
    config: json<AmbientAgentConfig>(),
    title: text(),
    metadata: json<Record<string, string>>(),
    mode: nullable(text<RunMode>()),
  },
});

/**
 * Reads the request that created a run of the team, and replaces members by those in `instead`; returns null if there is no such run. The
 * new run gets neither the conversation nor the parent of the first run.
 */
export async function readRerun(
  db: Queryable,
  teamId: string,
  runId: string,
  instead: RerunRequest,
): Promise<Rerun | null> {
  if (!isUuid(runId)) return null;
  const [run] = await db.query(readRequest, [runId, teamId]);
  if (!run) return null;
  const attachments = await readAttachmentsOfRequest(db, runId);
  // If the new request has a prompt and no title, drop the old title, so that the title is taken from the new prompt.
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
