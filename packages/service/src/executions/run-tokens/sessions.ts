import type { Database, Statement } from '../../store/database/database.ts';
import { hashRunToken } from '../queue/assign.ts';
import type { Phase } from '../transitions/transition.ts';
import { type Attempt, isAttempt } from './attempt.ts';

/** What a run token opens: one execution of one run. */
export interface RunSession extends Attempt {
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
    WHERE ${isAttempt('e', '$1')}`,
};

/**
 * The session of a run token; null where the token is unknown, or its execution ended or was given to another worker.
 * Look-up is by SHA-256 of 32 random bytes: timing tells nothing about a token that is not known already.
 */
export async function authenticateRunToken(db: Database, token: string): Promise<RunSession | null> {
  if (!token.startsWith('ryr_') || token.length > 200) return null;
  const tokenHash = hashRunToken(token);
  const [row] = await db.query<Omit<RunSession, 'token' | 'tokenHash'>>(readSession, [tokenHash]);
  return row ? { ...row, token, tokenHash } : null;
}

/** The same, but null too where the execution is stopping: its agent needs no model and no repository to report its end. */
export async function authenticateWorkingRunToken(db: Database, token: string): Promise<RunSession | null> {
  const session = await authenticateRunToken(db, token);
  return session?.phase === 'stopping' ? null : session;
}
