import type { Database, Statement } from '../../store/database/database.ts';
import { hashRunToken } from '../queue/assign.ts';
import { handedOutPhases } from '../transitions/phases.ts';
import type { Phase } from '../transitions/transition.ts';

/** What a run token opens: one execution of one run. */
export interface RunSession {
  readonly runId: string;
  readonly executionId: string;
  /** 1, 2, … in the run */
  readonly executionNumber: number;
  readonly teamId: string;
  readonly conversationId: string;
  readonly modelId: string;
  readonly environmentId: string | null;
  readonly phase: Phase;
  /** Raw token, for redaction. */
  readonly token: string;
}

const readSession: Statement = {
  name: 'read_run_session',
  text: `
    SELECT r.id AS "runId", e.id AS "executionId", e.number AS "executionNumber", r.team_id AS "teamId",
      r.conversation_id AS "conversationId", r.model_id AS "modelId", r.environment_id AS "environmentId", e.phase
    FROM executions e JOIN runs r ON r.id = e.run_id
    WHERE e.token_hash = $1 AND e.phase IN ${handedOutPhases}`,
};

/**
 * The session of a run token; null where the token is unknown, or its execution ended or was given to another worker.
 * Look-up is by SHA-256 of 32 random bytes: timing tells nothing about a token that is not known already.
 */
export async function authenticateRunToken(db: Database, token: string): Promise<RunSession | null> {
  if (!token.startsWith('ryr_') || token.length > 200) return null;
  const [row] = await db.query<Omit<RunSession, 'token'>>(readSession, [hashRunToken(token)]);
  return row ? { ...row, token } : null;
}
