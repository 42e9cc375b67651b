import { randomUUIDv7 } from 'node:crypto';
import { type ClientEvent, maxClientEvents } from '@runyard/contract/agent/client-events';
import { boolean, defineStatement, integer } from '../../platform/store/database/statement.ts';
import { withoutSecrets } from '../../team/redaction/agent-text.ts';
import type { ExecutionDeps } from '../executions/deps.ts';
import { lockWorkingAttempt } from '../executions/run-tokens/attempt.ts';
import type { RunSession } from '../executions/run-tokens/sessions.ts';
import { appendTimelineEvent } from '../executions/timeline/timeline.ts';

const countEvents = defineStatement({
  name: 'count_client_events',
  text: `
    SELECT count(*)::int AS count, coalesce(bool_or(payload->>'client_event_uuid' = $2), false) AS "isKept"
    FROM run_events WHERE run_id = $1 AND payload->>'kind' = 'client'`,
  row: { count: integer, isKept: boolean },
});

/**
 * Adds an event of a worker, or of another program with the run's token, to the timeline. A repeated event and each event above
 * `maxClientEvents` change nothing. Throws `AttemptOver`.
 */
export async function keepClientEvent(deps: ExecutionDeps, session: RunSession, event: ClientEvent): Promise<void> {
  const { runId, executionId } = session;
  const { event_uuid: uuid, event_name: name, payload } = withoutSecrets(deps, session, event);
  const step = { step_id: randomUUIDv7(), kind: 'client', name, client_event_uuid: uuid };
  await deps.db.transaction(async (tx) => {
    await lockWorkingAttempt(tx, session);
    const [found] = await tx.query(countEvents, [runId, uuid]);
    if (!found || found.isKept || found.count >= maxClientEvents) return;
    await appendTimelineEvent(tx, {
      runId,
      executionId,
      type: payload ? 'setup_step_finished' : 'setup_step_progress',
      payload: {
        ...step,
        ...(payload ? { duration_ms: payload.latency_ms ?? 0 } : {}),
        ...(payload?.is_error ? { error: 'The worker reports that this step failed.' } : {}),
      },
    });
  });
}
