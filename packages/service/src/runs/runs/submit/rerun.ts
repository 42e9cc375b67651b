import type { AmbientAgentConfig } from '@runyard/contract/runs/config';
import type { RunMode } from '@runyard/contract/runs/message-origin';
import type { RerunRequest, RunAgentRequest } from '@runyard/contract/runs/run-request';
import type { Queryable } from '../../../platform/store/database/database.ts';
import { defineStatement, json, nullable, text, uuid } from '../../../platform/store/database/statement.ts';
import { isUuid } from '../../../platform/store/database/uuid.ts';
import { readAttachmentsOfRequest } from '../../files/attachments/read.ts';
import type { StoredAttachment } from '../../files/attachments/store.ts';
import type { RunCheckout } from '../read/checkout.ts';

/** A request that repeats a run, and the files of the request that created the run. */
export interface Rerun {
  readonly request: RunAgentRequest;
  readonly attachments: readonly StoredAttachment[];
  readonly checkout: RunCheckout | null;
}

const readRequest = defineStatement({
  name: 'read_request_to_rerun',
  text: `SELECT q.prompt, q.config, r.title, r.metadata, r.mode, q.checkout, p.id AS parent_run_id FROM runs r JOIN run_requests q ON q.run_id = r.id
    LEFT JOIN runs p ON p.id = r.parent_run_id AND p.state <> 'CANCELLED' WHERE r.id = $1 AND r.team_id = $2`,
  row: {
    prompt: text(),
    config: json<AmbientAgentConfig>(),
    title: text(),
    metadata: json<Record<string, string>>(),
    mode: nullable(text<RunMode>()),
    checkout: nullable(json<RunCheckout>()),
    /** NULL if the parent was deleted or cancelled, or if there is none. */
    parent_run_id: nullable(uuid),
  },
});

/**
 * Reads the request that created a run of the team, and replaces members by those in `instead`; returns null if there is no such run. The
 * new run is below the parent of the first run, and does not get its conversation. A run for a comparison has no parent and no metadata of
 * the first run, so neither its parent nor an automation nor a subscription takes it for work. It is not repeated, and its sandbox ends with
 * its turn.
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
  const isComparison = instead.comparison === true;
  const { retry: _, ...once } = instead.config ?? run.config;
  const request: RunAgentRequest = {
    prompt: instead.prompt ?? run.prompt,
    config: isComparison ? { ...once, idle_timeout_minutes: 0 } : (instead.config ?? run.config),
    metadata: instead.metadata ?? (isComparison ? {} : run.metadata),
    ...(title === undefined ? {} : { title }),
    ...(run.mode ? { mode: run.mode } : {}),
    ...(run.parent_run_id && !isComparison ? { parent_run_id: run.parent_run_id } : {}),
  };
  return { request, attachments, checkout: run.checkout };
}
