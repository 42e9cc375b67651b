/** Reports of a run that has reached its limit of stored data: once for its events, once for its transcript. */
import type { RunLimits } from '../../executions/run-limits.ts';
import type { EventRow } from './event-rows.ts';

const inMb = (bytes: number): string => `${Math.round(bytes / 1024 / 1024)} MB`;

/** Returns the rows that report a full conversation: one for the timeline, and one for the conversation if a step is known. */
export function fullConversationRows(
  { eventBytes }: RunLimits,
  { occurredAt, stepId }: { readonly occurredAt: string; readonly stepId: string | undefined },
): EventRow[] {
  const data = {
    what: 'conversation',
    limit_bytes: eventBytes,
    message: `The conversation of this run has reached ${inMb(eventBytes)}. The run continues, but further text and output are not stored; its artifacts are. RUNYARD_RUN_EVENTS_MB is the limit.`,
  };
  const timeline: EventRow = { event_type: 'output_limit_reached', occurred_at: occurredAt, event: data };
  if (stepId === undefined) return [timeline];
  const notice = { type: 'notice', occurred_at: occurredAt, step_id: stepId, name: 'output_limit_reached', data };
  return [timeline, { occurred_at: occurredAt, event: notice }];
}

/** Returns the two reports of a full transcript: a row of the timeline, and the last line of the transcript. */
export function fullTranscriptReport(
  { transcriptBytes }: RunLimits,
  occurredAt: string,
): { readonly row: EventRow; readonly line: string } {
  const data = {
    what: 'transcript',
    limit_bytes: transcriptBytes,
    message: `The raw transcript of this run has reached ${inMb(transcriptBytes)}. The run continues, but further lines are not stored. RUNYARD_RUN_TRANSCRIPT_MB is the limit.`,
  };
  return {
    row: { event_type: 'output_limit_reached', occurred_at: occurredAt, event: data },
    line: JSON.stringify({ runyard: { output_limit_reached: data } }),
  };
}
