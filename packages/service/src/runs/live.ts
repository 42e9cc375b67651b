/** The live stream of a run: read from the tables after each notice, so that it resumes anywhere and misses nothing. */
import type { AgentEvent } from '@runyard/contract/agent-protocol';
import type { LiveEvent } from '@runyard/contract/live-events';
import { isTerminal, type RunState } from '@runyard/contract/states';
import type { TimelineEventType } from '@runyard/contract/timeline';
import type { Statement } from '../store/database.ts';
import type { Engine } from './engine.ts';

/** Events read at once; a slow reader holds no more than these. */
const pageSize = 200;

const readLive: Statement = {
  name: 'read_live_events',
  text: `
    (SELECT seq, event_uuid, event_type, state, occurred_at, execution_number, payload, NULL::jsonb AS event
     FROM run_events WHERE run_id = $1 AND seq > $2 ORDER BY seq LIMIT ${pageSize})
    UNION ALL
    (SELECT seq, NULL, NULL, NULL, NULL, NULL, NULL, event
     FROM conversation_events WHERE run_id = $1 AND seq > $2 ORDER BY seq LIMIT ${pageSize})
    ORDER BY seq LIMIT ${pageSize}`,
};

const readEnd: Statement = {
  name: 'read_live_end',
  text: `
    SELECT r.state, r.event_seq, r.status_message, r.error_code, e.phase
    FROM runs r JOIN executions e ON e.id = r.current_execution_id WHERE r.id = $1`,
};

interface LiveRow {
  seq: number;
  event_uuid: string | null;
  event_type: TimelineEventType | null;
  state: RunState | null;
  occurred_at: string;
  execution_number: number | null;
  payload: Record<string, unknown> | null;
  event: AgentEvent | null;
}

/** One event of the stream; `id` is absent where more of the same number follows. */
export interface NumberedEvent {
  readonly id?: number;
  readonly event: LiveEvent;
}

function* eventsOf(runId: string, row: LiveRow): Generator<NumberedEvent> {
  if (row.event) {
    yield { id: row.seq, event: { type: 'conversation', event: { ...row.event, seq: row.seq } } };
    return;
  }
  if (row.event_type && row.event_uuid) {
    const event: LiveEvent = {
      type: 'timeline',
      event: {
        event_uuid: row.event_uuid,
        run_id: runId,
        event_type: row.event_type,
        occurred_at: row.occurred_at,
        ...(row.execution_number === null ? {} : { execution_id: row.execution_number }),
        ...(row.payload ? { payload: row.payload } : {}),
      },
    };
    yield row.state ? { event } : { id: row.seq, event };
  }
  if (row.state) {
    const { message, error_code } = row.payload ?? {};
    yield {
      id: row.seq,
      event: {
        type: 'state',
        state: row.state,
        ...(typeof message === 'string' ? { status_message: message } : {}),
        ...(typeof error_code === 'string' ? { error_code } : {}),
      },
    };
  }
}

/**
 * Events after number `after`, as they come; `null` where nothing came for `idleMs` (send a sign of life). Ends when the
 * run has ended and its last event was given.
 */
export async function* followRun(
  engine: Engine,
  runId: string,
  after: number,
  idleMs: number,
  signal: AbortSignal,
): AsyncGenerator<NumberedEvent | null> {
  let last = after;
  let woken = Promise.withResolvers<void>();
  const stop = engine.notices.onRun(runId, () => woken.resolve());
  const onAbort = () => woken.resolve();
  signal.addEventListener('abort', onAbort);
  try {
    while (!signal.aborted) {
      woken = Promise.withResolvers<void>();
      const [end] = await engine.db.query<{ state: RunState }>(readEnd, [runId]);
      if (!end) return;
      for (;;) {
        const rows = await engine.db.query<LiveRow>(readLive, [runId, last]);
        for (const row of rows) {
          yield* eventsOf(runId, row);
          last = row.seq;
        }
        if (rows.length < pageSize) break;
      }
      // The state was read before the events, so all of them were given; of old runs retention keeps only some.
      if (isTerminal(end.state)) return;
      const timer = setTimeout(() => woken.resolve(), idleMs);
      const before = last;
      await woken.promise;
      clearTimeout(timer);
      if (before === last) yield null;
    }
  } finally {
    stop();
    signal.removeEventListener('abort', onAbort);
  }
}
