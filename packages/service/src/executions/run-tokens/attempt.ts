/**
 * The fence of an agent's requests. Between the authentication of a request and its transaction the execution may be given
 * to another worker, with another run token, or be told to stop. So each transaction checks the token again, under the lock of the run's row.
 */

import type { BlobStore } from '../../store/blobs/blobs.ts';
import type { Database, Queryable, Statement } from '../../store/database/database.ts';
import { handedOutPhases } from '../transitions/phases.ts';
import type { Phase } from '../transitions/transition.ts';

/** One handing out of an execution to a worker: what a run token names. */
export interface Attempt {
  readonly runId: string;
  readonly executionId: string;
  /** SHA-256 of the run token. */
  readonly tokenHash: Buffer;
}

/** SQL: the execution `e` was last handed out with the run token that has the hash `hash`, and has not ended. */
export const isAttempt = (e: string, hash: string): string =>
  `${e}.token_hash = ${hash} AND ${e}.phase IN ${handedOutPhases}`;

/**
 * Thrown where a request may not go on; nothing of it was done. `superseded` 401: the execution has ended or was handed out again;
 * `stopping` 409: only its end can be reported.
 */
export class AttemptOver extends Error {
  readonly why: 'superseded' | 'stopping';
  constructor(why: 'superseded' | 'stopping') {
    super(`the attempt is ${why}`);
    this.why = why;
  }
}

/** In one order everywhere, so that two transactions cannot wait for one another. */
const lockRuns: Statement = {
  name: 'lock_runs_of_attempt',
  text: 'SELECT FROM runs WHERE id = ANY($1::uuid[]) ORDER BY id FOR NO KEY UPDATE',
};

/** After `lockRuns`, in a statement of its own: it sees what the lock waited for. A token changes only under the lock of the run's row. */
const readPhase: Statement = {
  name: 'read_phase_of_attempt',
  text: `SELECT e.phase FROM executions e WHERE e.id = $1 AND ${isAttempt('e', '$2')}`,
};

/** Locks the attempt's run, and `also` other runs, until the transaction ends. Throws where the attempt is over. */
export async function lockAttempt(tx: Queryable, attempt: Attempt, also: readonly string[] = []): Promise<Phase> {
  await tx.query(lockRuns, [[attempt.runId, ...also]]);
  const [execution] = await tx.query<{ phase: Phase }>(readPhase, [attempt.executionId, attempt.tokenHash]);
  if (!execution) throw new AttemptOver('superseded');
  return execution.phase;
}

/** The same for what an agent may do only until it is told to stop. */
export async function lockWorkingAttempt(
  tx: Queryable,
  attempt: Attempt,
  also: readonly string[] = [],
): Promise<Phase> {
  const phase = await lockAttempt(tx, attempt, also);
  if (phase === 'stopping') throw new AttemptOver('stopping');
  return phase;
}

/** Writes the row that names a blob, in a transaction of the attempt. Where the attempt is over it deletes the blob and throws. */
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
    // After any other error the row may name it all the same.
    if (error instanceof AttemptOver && blobKey !== undefined) await deps.blobs.delete(blobKey);
    throw error;
  }
}
