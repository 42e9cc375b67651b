import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import type { ReportChanges } from '@runyard/contract/runs/changes';
import type { Database } from '../../../platform/store/database/database.ts';
import { defineStatement } from '../../../platform/store/database/statement.ts';
import { withoutSecrets } from '../../../team/redaction/agent-text.ts';
import type { ExecutionDeps } from '../../executions/deps.ts';
import { lockAttempt } from '../../executions/run-tokens/attempt.ts';
import type { RunSession } from '../../executions/run-tokens/sessions.ts';
import { readTeamRoom, type StorageRefusal, teamFull } from '../stored-bytes.ts';

const compress = promisify(gzip);

const keepReport = defineStatement({
  name: 'keep_report_of_changes',
  text: `
    INSERT INTO run_changes (run_id, reported_at, content) VALUES ($1, clock_timestamp(), $2)
    ON CONFLICT (run_id) DO UPDATE SET reported_at = excluded.reported_at, content = excluded.content`,
  row: {},
});

/**
 * Replaces the stored list of a run's changed files. Returns a refusal (413) if the team's storage limit does not allow the list. Throws
 * `AttemptOver`.
 */
export async function reportChanges(
  deps: {
    readonly db: Database;
    readonly executionDeps: Pick<ExecutionDeps, 'db' | 'limits' | 'secrets' | 'vault'>;
  },
  session: RunSession,
  { repositories }: ReportChanges,
): Promise<StorageRefusal | null> {
  const content = await compress(JSON.stringify(withoutSecrets(deps.executionDeps, session, repositories)));
  const room = await readTeamRoom(deps.executionDeps, undefined, session.teamId);
  if (content.length > room.files) return teamFull(deps.executionDeps, room.stored);
  room.take(content.length);
  await deps.db.transaction(async (tx) => {
    await lockAttempt(tx, session);
    await tx.query(keepReport, [session.runId, content]);
  });
  return null;
}
