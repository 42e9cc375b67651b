import { type Attempt, isAttempt } from '../../executions/run-tokens/attempt.ts';
import type { Queryable, Statement } from '../../store/database/database.ts';

/** From the first time on, however often it is asked for: nobody stays by uploading for ever. */
const maxSeconds = 120;
const stepSeconds = 15;
const everyMs = 5_000;

/** Only of an agent that leaves by itself: after a cancel the sandbox is killed when it was said. */
const hold: Statement = {
  name: 'hold_sandbox',
  text: `
    UPDATE executions e SET
      keeping_until = coalesce(keeping_until, clock_timestamp() + interval '${maxSeconds} seconds'),
      stop_deadline = greatest(stop_deadline, least(clock_timestamp() + interval '${stepSeconds} seconds',
        coalesce(keeping_until, clock_timestamp() + interval '${maxSeconds} seconds')))
    WHERE e.id = $1 AND ${isAttempt('e', '$2')} AND e.phase = 'stopping' AND e.stop_reason = 'finished'`,
};

/** Puts off the end of the sandbox while `work` goes on, for two minutes at most. */
export async function holdSandbox<T>(
  db: Queryable,
  { executionId, tokenHash }: Pick<Attempt, 'executionId' | 'tokenHash'>,
  work: () => Promise<T>,
): Promise<T> {
  const extend = () => db.query(hold, [executionId, tokenHash]).catch(() => {});
  const timer = setInterval(extend, everyMs);
  try {
    await extend();
    return await work();
  } finally {
    clearInterval(timer);
  }
}
