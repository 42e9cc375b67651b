import { promisify } from 'node:util';
import { gunzip } from 'node:zlib';
import type { RepositoryChanges, RunChanges } from '@runyard/contract/runs/changes';
import type { Queryable } from '../../../platform/store/database/database.ts';
import { bytes, defineStatement, nullable, timestamp } from '../../../platform/store/database/statement.ts';
import { tellAgent } from '../../executions/notices.ts';

const decompress = promisify(gunzip);

/**
 * Maximum size of a report as JSON. It equals the limit of the request body, and is larger than the agent's reports, because redaction may
 * make a report longer: the mark can be longer than the secret that it replaces.
 */
const maxReportBytes = 64 * 1024 * 1024;

const readReport = defineStatement({
  name: 'read_report_of_changes',
  text: 'SELECT reported_at, content FROM run_changes WHERE run_id = $1',
  row: { reported_at: nullable(timestamp), content: nullable(bytes) },
});

/** Asks the agent at most once in 5 seconds, even if several service processes get requests. */
const askAgent = defineStatement({
  name: 'ask_agent_for_changes',
  text: `
    INSERT INTO run_changes AS c (run_id, asked, asked_at) VALUES ($1, 1, clock_timestamp())
    ON CONFLICT (run_id) DO UPDATE SET asked = c.asked + 1, asked_at = excluded.asked_at
    WHERE c.asked_at IS NULL OR c.asked_at < excluded.asked_at - interval '5 seconds'
    RETURNING ${tellAgent('run_id')}`,
  row: {},
});

/** SQL: number of the last request for the changed files of a run, if the agent may still answer this request; otherwise NULL. */
export const askedForChanges = (runId: string): string =>
  `(SELECT c.asked FROM run_changes c WHERE c.run_id = ${runId} AND c.asked_at > now() - interval '1 minute')`;

/** Reads the changed files that a run's sandbox has reported. If `isAtWork`, also asks the agent for the present changes. */
export async function readRunChanges(db: Queryable, runId: string, isAtWork: boolean): Promise<RunChanges> {
  if (isAtWork) await db.query(askAgent, [runId]);
  const [report] = await db.query(readReport, [runId]);
  if (!report?.content || report.reported_at === null) return { is_live: isAtWork, repositories: [] };
  const json = await decompress(report.content, { maxOutputLength: maxReportBytes });
  return {
    as_of: report.reported_at,
    is_live: isAtWork,
    repositories: JSON.parse(json.toString()) as RepositoryChanges[],
  };
}
