import { randomUUIDv7 } from 'node:crypto';
import { maxArtifactsPerRun } from '@runyard/contract/artifacts';
import type { ArtifactType } from '@runyard/contract/states';
import type { Engine } from '../../executions/engine.ts';
import { withoutSecrets } from '../../executions/run-tokens/agent-text.ts';
import { lockWorkingAttempt } from '../../executions/run-tokens/attempt.ts';
import type { RunSession } from '../../executions/run-tokens/sessions.ts';
import type { Fault } from '../../fault.ts';
import type { Queryable } from '../../store/database/database.ts';
import { checkReportData } from './report-data.ts';

/** `invalid` 400. `isFileLike`: its bytes are to be uploaded. */
export type ReportOutcome =
  | { readonly kind: 'stored'; readonly artifactUid: string; readonly isFileLike: boolean }
  | { readonly kind: 'invalid'; readonly faults: readonly Fault[] };

/**
 * Stores what a run reports, without its secrets, in the transaction `tx`: the run's row is locked, so that its artifacts are
 * counted right. Throws `AttemptOver`.
 */
export async function reportArtifact(
  engine: Pick<Engine, 'secrets'>,
  tx: Queryable,
  session: RunSession,
  request: { readonly artifact_type: ArtifactType; readonly data: Record<string, unknown> },
): Promise<ReportOutcome> {
  const checked = checkReportData(request.artifact_type, withoutSecrets(engine, session, request.data));
  if (!checked.ok) return { kind: 'invalid', faults: checked.faults };
  const { data, isFileLike, canonicalUrl } = checked.report;
  await lockWorkingAttempt(tx, session);
  if (request.artifact_type === 'PULL_REQUEST') {
    // Noticed in a command's output and reported by hand, or by each execution of the run: one artifact, the last data.
    const [known] = await tx.query<{ id: string }>(
      `UPDATE artifacts SET data = $3::jsonb
       WHERE run_id = $1 AND artifact_type = 'PULL_REQUEST' AND canonical_url = $2 RETURNING id`,
      [session.runId, canonicalUrl, JSON.stringify(data)],
    );
    if (known) return { kind: 'stored', artifactUid: known.id, isFileLike };
  }
  const artifactUid = randomUUIDv7();
  const inserted = await tx.query(
    `INSERT INTO artifacts (id, team_id, run_id, execution_id, conversation_id, artifact_type, data, is_ready, canonical_url)
     SELECT $1, $2, $3, $4, $5, $6, $7::jsonb, $8, $9
     WHERE (SELECT count(*) FROM artifacts WHERE run_id = $3) < ${maxArtifactsPerRun}
     RETURNING id`,
    [
      artifactUid,
      session.teamId,
      session.runId,
      session.executionId,
      session.conversationId,
      request.artifact_type,
      JSON.stringify(data),
      !isFileLike,
      canonicalUrl,
    ],
  );
  if (inserted.length === 0) {
    return { kind: 'invalid', faults: [{ path: '', message: `a run has at most ${maxArtifactsPerRun} artifacts` }] };
  }
  return { kind: 'stored', artifactUid, isFileLike };
}
