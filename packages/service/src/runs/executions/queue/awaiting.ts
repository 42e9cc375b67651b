/** Frees the slot of an execution while its agent only waits for other runs. Otherwise those runs might never get a slot. */

import type { Queryable } from '../../../platform/store/database/database.ts';
import { defineStatement, nullable, text } from '../../../platform/store/database/statement.ts';
import { queueChannel, runChannel } from '../channels.ts';
import { workingPhases } from '../transitions/phases.ts';

/** Names an attempt of an execution. */
interface AttemptKey {
  readonly executionId: string;
  /** SHA-256 of the run token. */
  readonly tokenHash: Buffer;
}

/** Notifies the dispatcher on the first mark only, because only then a slot became free. */
const mark = defineStatement({
  name: 'mark_awaiting',
  text: `
    UPDATE executions e SET awaiting_until = clock_timestamp() + make_interval(secs => $2::float8 / 1000) FROM executions before
    WHERE e.id = $1 AND e.token_hash = $3 AND before.id = e.id AND e.phase IN ${workingPhases}
    RETURNING CASE WHEN before.awaiting_until > clock_timestamp() THEN NULL
      ELSE pg_notify('${runChannel}', e.run_id::text)::text || pg_notify('${queueChannel}', e.pool)::text END AS notified`,
  row: { notified: nullable(text()) },
});

/** Marks the attempt's execution as waiting for other runs, for `forMs` from now at most. */
export async function markAwaiting(
  db: Queryable,
  { executionId, tokenHash }: AttemptKey,
  forMs: number,
): Promise<void> {
  await db.query(mark, [executionId, forMs, tokenHash]);
}

const unmark = defineStatement({
  name: 'unmark_awaiting',
  text: `
    UPDATE executions SET awaiting_until = NULL WHERE id = $1 AND token_hash = $2 AND awaiting_until IS NOT NULL
    RETURNING pg_notify('${runChannel}', run_id::text)::text AS notified`,
  row: { notified: text() },
});

/** Removes the mark: the agent works again, and its execution holds a slot. */
export async function unmarkAwaiting(db: Queryable, { executionId, tokenHash }: AttemptKey): Promise<void> {
  await db.query(unmark, [executionId, tokenHash]);
}
