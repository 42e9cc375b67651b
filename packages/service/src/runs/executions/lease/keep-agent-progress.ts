import type { Queryable } from '../../../platform/store/database/database.ts';
import { defineStatement } from '../../../platform/store/database/statement.ts';

/** Names the parameters of a statement that records the progress of an agent. */
interface ProgressParameters {
  readonly lastSeq: string;
  readonly heldTexts: string;
  readonly transcriptBytes: string;
  readonly leaseSeconds: string;
}

/** Returns SQL of the assignments to columns of `executions` that record how far an agent's events are applied, and renew the lease. */
export const setAgentProgress = ({ lastSeq, heldTexts, transcriptBytes, leaseSeconds }: ProgressParameters): string => `
      last_agent_seq = ${lastSeq}, redaction_tails = ${heldTexts}::jsonb, transcript_bytes = transcript_bytes + ${transcriptBytes},
      agent_seen_at = clock_timestamp(), lease_until = greatest(lease_until, clock_timestamp() + make_interval(secs => ${leaseSeconds}::float8))`;

const keepProgress = defineStatement({
  name: 'keep_agent_progress',
  text: `
    UPDATE executions SET ${setAgentProgress({ lastSeq: '$2', heldTexts: '$3', transcriptBytes: '$4', leaseSeconds: '$5' })}
    WHERE id = $1`,
  row: {},
});

/** How far the events of an execution's agent are applied. */
export interface AgentProgress {
  /** Number of the last event that was applied. */
  readonly lastSeq: number;
  /** Text that redaction holds back, per stream. */
  readonly heldTexts: Readonly<Record<string, string>>;
  /** The lease lasts at least so long from now on. */
  readonly leaseSeconds: number;
}

/** Records how far the agent's events are applied, and renews the lease: the agent is alive. The caller has locked the run's row. */
export async function keepAgentProgress(
  tx: Queryable,
  executionId: string,
  progress: AgentProgress & { /** Bytes of transcript to add. */ readonly transcriptBytes: number },
): Promise<void> {
  const { lastSeq, heldTexts, transcriptBytes, leaseSeconds } = progress;
  await tx.query(keepProgress, [executionId, lastSeq, JSON.stringify(heldTexts), transcriptBytes, leaseSeconds]);
}
