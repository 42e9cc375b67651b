/** Reports of a run that has reached its limit of stored data: once for its events, once for its transcript. */
import type { RunLimits } from '../../executions/deps.ts';
import type { ReachedLimit } from './event-budget.ts';
import type { EventRow } from './event-rows.ts';

const inMb = (bytes: number): string => `${Math.round(bytes / 1024 / 1024)} MB`;

/** Returns the limit and the sentence about it. */
const reachedLimit = (reached: ReachedLimit, ofRun: { bytes: number; full: string }, { teamBytes }: RunLimits) =>
  reached === 'run'
    ? { limit_bytes: ofRun.bytes, full: ofRun.full }
    : {
        limit_bytes: teamBytes,
        full: `All that the team stores has reached ${inMb(teamBytes)} (RUNYARD_TEAM_STORAGE_MB).`,
      };

/** Returns the rows that report a full conversation: one for the timeline, and one for the conversation if a step is known. */
export function fullConversationRows(
  limits: RunLimits,
  {
    occurredAt,
    stepId,
    reached,
  }: { readonly occurredAt: string; readonly stepId: string | undefined; readonly reached: ReachedLimit },
): EventRow[] {
  const bytes = limits.eventBytes;
  const full = `The conversation of this run has reached ${inMb(bytes)} (RUNYARD_RUN_EVENTS_MB).`;
  const limit = reachedLimit(reached, { bytes, full }, limits);
  const data = {
    what: 'conversation',
    limit_bytes: limit.limit_bytes,
    message: `${limit.full} The run continues, but its further text and output are not stored.`,
  };
  const timeline: EventRow = { event_type: 'output_limit_reached', occurred_at: occurredAt, event: data };
  if (stepId === undefined) return [timeline];
  const notice = { type: 'notice', occurred_at: occurredAt, step_id: stepId, name: 'output_limit_reached', data };
  return [timeline, { occurred_at: occurredAt, event: notice }];
}

/** Returns the two reports of a full transcript: a row of the timeline, and the last line of the transcript. */
export function fullTranscriptReport(
  limits: RunLimits,
  reached: ReachedLimit,
  occurredAt: string,
): { readonly row: EventRow; readonly line: string } {
  const bytes = limits.transcriptBytes;
  const full = `The raw transcript of this run has reached ${inMb(bytes)} (RUNYARD_RUN_TRANSCRIPT_MB).`;
  const limit = reachedLimit(reached, { bytes, full }, limits);
  const data = {
    what: 'transcript',
    limit_bytes: limit.limit_bytes,
    message: `${limit.full} The run continues, but its further lines are not stored.`,
  };
  return {
    row: { event_type: 'output_limit_reached', occurred_at: occurredAt, event: data },
    line: JSON.stringify({ runyard: { output_limit_reached: data } }),
  };
}
