/** What a run is told when it has stored as much as it may: once for its events, once for its transcript. */

import type { TimelineEventType } from '@runyard/contract/timeline';
import type { RunLimits } from '../../executions/run-limits.ts';
import type { Queryable, Statement } from '../../store/database/database.ts';
import type { EventBudget } from './event-budget.ts';

interface ToldEvent {
  readonly event_type?: TimelineEventType;
  readonly event: Record<string, unknown>;
}

const shownMb = (bytes: number): string => `${Math.round(bytes / 1024 / 1024)} MB`;

/** For the timeline, and for the conversation where it has a step. */
export function eventsFull(
  { eventBytes }: RunLimits,
  at: { readonly occurredAt: string; readonly stepId: string | undefined },
): ToldEvent[] {
  const data = {
    what: 'conversation',
    limit_bytes: eventBytes,
    message: `The conversation of this run has reached ${shownMb(eventBytes)}. The run goes on, but further text and output are not stored; its artifacts are. RUNYARD_RUN_EVENTS_MB is the limit.`,
  };
  const told: ToldEvent[] = [{ event_type: 'output_limit_reached', event: data }];
  const { occurredAt, stepId } = at;
  const notice = { type: 'notice', occurred_at: occurredAt, step_id: stepId, name: 'output_limit_reached', data };
  if (stepId !== undefined) told.push({ event: notice });
  return told;
}

/** For the timeline, and as the last line of the transcript. */
export function transcriptFull({ transcriptBytes }: RunLimits): { readonly event: ToldEvent; readonly line: string } {
  const data = {
    what: 'transcript',
    limit_bytes: transcriptBytes,
    message: `The raw transcript of this run has reached ${shownMb(transcriptBytes)}. The run goes on, but further lines are not stored. RUNYARD_RUN_TRANSCRIPT_MB is the limit.`,
  };
  return {
    event: { event_type: 'output_limit_reached', event: data },
    line: JSON.stringify({ runyard: { output_limit_reached: data } }),
  };
}

/** Looks at the last events only: it is for the notice of an agent that told very many. */
const readLastStep: Statement = {
  name: 'read_last_step_of_conversation',
  text: `
    SELECT event->>'step_id' AS step_id FROM (
      SELECT seq, event FROM conversation_events WHERE run_id = $1 ORDER BY seq DESC LIMIT 10000
    ) last WHERE event ? 'step_id' ORDER BY seq DESC LIMIT 1`,
};

/** The step that the conversation is at; undefined: it has none that is known. */
export async function lastStep(tx: Queryable, runId: string): Promise<string | undefined> {
  const [row] = await tx.query<{ step_id: string }>(readLastStep, [runId]);
  return row?.step_id;
}

const addDropped: Statement = {
  name: 'count_dropped_output',
  text: 'UPDATE runs SET dropped_events = dropped_events + $2, dropped_lines = dropped_lines + $3 WHERE id = $1',
};

/** The caller holds the run's row. */
export async function countDropped(tx: Queryable, runId: string, added: EventBudget['added']): Promise<void> {
  const { droppedEvents, droppedLines } = added;
  if (droppedEvents + droppedLines > 0) await tx.query(addDropped, [runId, droppedEvents, droppedLines]);
}
