import type { Queryable } from '../../store/database/database.ts';
import { defineStatement } from '../../store/database/statement.ts';

const keepProgress = defineStatement({
  name: 'keep_agent_progress',
  text: `
    UPDATE executions SET last_agent_seq = $2, redaction_tails = $3::jsonb, transcript_bytes = transcript_bytes + $4,
      agent_seen_at = clock_timestamp(), lease_until = greatest(lease_until, clock_timestamp() + make_interval(secs => $5::float8))
    WHERE id = $1`,
  row: {},
});

/** How far the events of an execution's agent are applied. */
interface AgentProgress {
  readonly executionId: string;
  /** Number of the last event that was applied. */
  readonly lastSeq: number;
  /** Text that redaction holds back, per stream. */
  readonly heldTexts: Readonly<Record<string, string>>;
  /** Bytes of transcript to add. */
  readonly transcriptBytes: number;
  /** The lease lasts at least so long from now on. */
  readonly leaseSeconds: number;
}

/** Records how far the agent's events are applied, and renews the lease: the agent is alive. The caller has locked the run's row. */
export async function keepAgentProgress(tx: Queryable, progress: AgentProgress): Promise<void> {
  const { executionId, lastSeq, heldTexts, transcriptBytes, leaseSeconds } = progress;
  await tx.query(keepProgress, [executionId, lastSeq, JSON.stringify(heldTexts), transcriptBytes, leaseSeconds]);
}
