import { randomUUIDv7 } from 'node:crypto';
import { maxArtifactsPerRun, maxOutputFilesPerRun } from '@runyard/contract/limits';
import type { ArtifactType } from '@runyard/contract/runs/states';
import type { Fault } from '../../../platform/fault.ts';
import type { Queryable } from '../../../platform/store/database/database.ts';
import { defineStatement, uuid } from '../../../platform/store/database/statement.ts';
import { withoutSecrets } from '../../../team/redaction/agent-text.ts';
import type { ExecutionDeps } from '../../executions/deps.ts';
import { lockWorkingAttempt } from '../../executions/run-tokens/attempt.ts';
import type { RunSession } from '../../executions/run-tokens/sessions.ts';
import { checkReportData } from './report-data.ts';

/** Outcome of a report. `invalid`: 400. `isFileLike`: the artifact has bytes, which the agent uploads next. */
export type ReportOutcome =
  | { readonly kind: 'stored'; readonly artifactUid: string; readonly isFileLike: boolean }
  | { readonly kind: 'invalid'; readonly faults: readonly Fault[] };

const updatePullRequest = defineStatement({
  name: 'update_reported_pull_request',
  text: `
    UPDATE artifacts SET data = $3::jsonb, is_opened = is_opened OR $4
    WHERE run_id = $1 AND artifact_type = 'PULL_REQUEST' AND canonical_url = $2 RETURNING id`,
  row: { id: uuid },
});

const insertArtifact = defineStatement({
  name: 'insert_artifact',
  text: `
    INSERT INTO artifacts (id, team_id, run_id, execution_id, conversation_id, artifact_type, data, is_ready, canonical_url, is_opened)
    SELECT $1, $2, $3, $4, $5, $6, $7::jsonb, $8, $9, $10
    WHERE (SELECT count(*) FROM artifacts WHERE run_id = $3) < ${maxArtifactsPerRun}
      AND ($7::jsonb->'output_of_action' IS NULL OR
        (SELECT count(*) FROM artifacts WHERE run_id = $3 AND data->'output_of_action' IS NOT NULL) < ${maxOutputFilesPerRun})
    RETURNING id`,
  row: { id: uuid },
});

/**
 * Stores an artifact report of a run in the transaction `tx`, with secrets redacted. Locks the run's row, so that concurrent reports cannot
 * exceed the limit of artifacts. Throws `AttemptOver`.
 */
export async function reportArtifact(
  deps: Pick<ExecutionDeps, 'secrets' | 'vault'>,
  tx: Queryable,
  session: RunSession,
  request: {
    readonly artifact_type: ArtifactType;
    readonly data: Record<string, unknown>;
    /** True: the service has opened this pull request for the run. */
    readonly isOpened?: boolean;
  },
): Promise<ReportOutcome> {
  const checked = checkReportData(request.artifact_type, withoutSecrets(deps, session, request.data));
  if (!checked.ok) return { kind: 'invalid', faults: checked.faults };
  const { data, isFileLike, canonicalUrl } = checked.report;
  const isOpened = request.isOpened === true;
  await lockWorkingAttempt(tx, session);
  if (request.artifact_type === 'PULL_REQUEST') {
    // A pull request stays one artifact, even if it is found in a command's output, reported by the agent, and reported again by each
    // execution.
    const [known] = await tx.query(updatePullRequest, [session.runId, canonicalUrl, JSON.stringify(data), isOpened]);
    if (known) return { kind: 'stored', artifactUid: known.id, isFileLike };
  }
  const artifactUid = randomUUIDv7();
  const inserted = await tx.query(insertArtifact, [
    artifactUid,
    session.teamId,
    session.runId,
    session.executionId,
    session.conversationId,
    request.artifact_type,
    JSON.stringify(data),
    !isFileLike,
    canonicalUrl,
    isOpened,
  ]);
  if (inserted.length === 0) {
    return {
      kind: 'invalid',
      faults: [
        {
          path: '',
          message: `a run has at most ${maxArtifactsPerRun} artifacts, and of these at most ${maxOutputFilesPerRun} outputs of commands`,
        },
      ],
    };
  }
  return { kind: 'stored', artifactUid, isFileLike };
}
