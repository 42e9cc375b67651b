import type { Queryable } from '../../../platform/store/database/database.ts';
import { defineStatement } from '../../../platform/store/database/statement.ts';
import { type Attempt, isAttempt } from '../run-tokens/attempt.ts';

/** Counted from the first upload, so that an agent cannot keep its sandbox by endless uploads. */
const maxSeconds = 120;
const stepSeconds = 15;
const everyMs = 5_000;

/** Only for an agent that exits by itself: after a cancel the sandbox is killed at its deadline. */
const putOffStop = defineStatement({
  name: 'hold_sandbox',
  text: `
    UPDATE executions e SET
      keeping_until = coalesce(keeping_until, clock_timestamp() + interval '${maxSeconds} seconds'),
      stop_deadline = greatest(stop_deadline, least(clock_timestamp() + interval '${stepSeconds} seconds',
        coalesce(keeping_until, clock_timestamp() + interval '${maxSeconds} seconds')))
    WHERE e.id = $1 AND ${isAttempt('e', '$2')} AND e.phase = 'stopping' AND e.stop_reason = 'finished'`,
  row: {},
});

/** Delays the end of the attempt's sandbox until `work` is done, for two minutes at most. */
export async function holdSandbox<T>(
  db: Queryable,
  { executionId, tokenHash }: Pick<Attempt, 'executionId' | 'tokenHash'>,
  work: () => Promise<T>,
): Promise<T> {
  const extend = () => db.query(putOffStop, [executionId, tokenHash]).catch(() => {});
  const timer = setInterval(extend, everyMs);
  try {
    await extend();
    return await work();
  } finally {
    clearInterval(timer);
  }
}
