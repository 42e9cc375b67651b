/**
 * Protects the data of a run against requests of an outdated agent. After the authentication of a request and before its transaction, the
 * execution may be assigned again, with another run token, or be stopped. So each transaction checks the token again under the lock of the
 * run's row.
 */
import { type Refusal, refuse } from '../../../platform/serving/refusal.ts';
import type { BlobStore } from '../../../platform/store/blobs/blobs.ts';
import type { Database, Queryable } from '../../../platform/store/database/database.ts';
import { defineStatement, text } from '../../../platform/store/database/statement.ts';
import { assignedPhases, type Phase } from '../phases.ts';

/** One assignment of an execution to a worker. Each assignment has a separate run token. */
export interface Attempt {
  readonly runId: string;
  readonly executionId: string;
  /** SHA-256 of the run token. */
  readonly tokenHash: Buffer;
}

/** SQL: the last assignment of the execution `e` has the run token with the hash `hash`, and the execution has not ended. */
export const isAttempt = (e: string, hash: string): string =>
  `${e}.token_hash = ${hash} AND ${e}.is_live AND ${e}.phase IN ${assignedPhases}`;

/**
 * Thrown if a request of an agent is refused; the request changed nothing. `superseded` 401: the execution has ended or was assigned
 * again; `stopping` 409: the agent may only report its end.
 */
export class AttemptOver extends Error {
  readonly why: 'superseded' | 'stopping';
  constructor(why: 'superseded' | 'stopping') {
    super(`the attempt is ${why}`);
    this.why = why;
  }
}

/** Locks several runs in the order of their ids. All transactions use this order, so two transactions cannot wait for each other. */
const lockRuns = defineStatement({
  name: 'lock_runs_of_attempt',
  text: 'SELECT FROM runs WHERE id = ANY($1::uuid[]) ORDER BY id FOR NO KEY UPDATE',
  row: {},
});

/**
 * This statement runs separately, after `lockRuns`. So it sees changes that other transactions committed while this transaction waited
 * for the lock. A run token changes only under the lock of the run.
 */
const readPhase = defineStatement({
  name: 'read_phase_of_attempt',
  text: `SELECT e.phase FROM executions e WHERE e.id = $1 AND ${isAttempt('e', '$2')}`,
  row: { phase: text<Phase>() },
});

/**
 * Locks the run, then the execution. PostgreSQL reads a row again after a wait for the row's lock, so this statement returns the present
 * phase.
 */
const lockRunAndExecution = defineStatement({
  name: 'lock_attempt',
  text: `
    SELECT e.phase FROM runs r JOIN executions e ON e.run_id = r.id
    WHERE r.id = $1 AND e.id = $2 AND ${isAttempt('e', '$3')} FOR NO KEY UPDATE OF r, e`,
  row: { phase: text<Phase>() },
});

/** Locks the attempt's run, and the runs `also`, until the transaction ends. Throws `AttemptOver`. */
export async function lockAttempt(tx: Queryable, attempt: Attempt, also: readonly string[] = []): Promise<Phase> {
  const { runId, executionId, tokenHash } = attempt;
  if (also.length > 0) await tx.query(lockRuns, [[runId, ...also]]);
  const [execution] =
    also.length > 0
      ? await tx.query(readPhase, [executionId, tokenHash])
      : await tx.query(lockRunAndExecution, [runId, executionId, tokenHash]);
  if (!execution) throw new AttemptOver('superseded');
  return execution.phase;
}

/** Locks an attempt for a request that an agent may make only until it is stopped. Throws `AttemptOver`. */
export async function lockWorkingAttempt(
  tx: Queryable,
  attempt: Attempt,
  also: readonly string[] = [],
): Promise<Phase> {
  const phase = await lockAttempt(tx, attempt, also);
  if (phase === 'stopping') throw new AttemptOver('stopping');
  return phase;
}

/** Calls `write`, which stores the row of a blob, in a transaction of the attempt. If the attempt is over, deletes the blob and throws `AttemptOver`. */
export async function ofAttempt<T>(
  deps: { readonly db: Database; readonly blobs: BlobStore },
  attempt: Attempt,
  blobKey: string | undefined,
  write: (tx: Queryable) => Promise<T>,
): Promise<T> {
  try {
    return await deps.db.transaction(async (tx) => {
      await lockAttempt(tx, attempt);
      return await write(tx);
    });
  } catch (error) {
    // After another error the commit may still have succeeded, and the row may exist.
    if (error instanceof AttemptOver && blobKey !== undefined) await deps.blobs.delete(blobKey);
    throw error;
  }
}

/** Answer 401: the execution of the run token has ended, or was assigned again with another token. */
export const supersededAttempt = (): Refusal =>
  refuse('authentication_required', { detail: 'The execution of this run token has ended or was superseded.' });

/** Answer 409: the agent may do the action only until its execution is stopping. */
export const stoppingAttempt = (): Refusal =>
  refuse('conflict', { detail: 'The execution is stopping: only its end can be reported.' });

/** Answer 409: the execution runs a check, and its setup has ended. */
export const onlyReports = (): Refusal =>
  refuse('conflict', { detail: 'The check has begun: its run can only report and end.' });
