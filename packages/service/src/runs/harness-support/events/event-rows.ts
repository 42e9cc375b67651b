/** Makes rows of the timeline and the conversation from events of an agent, and from the report that a storage limit was reached. */

import type { AgentEvent } from '@runyard/contract/runs/agent-events';
import type { TimelineEventType } from '@runyard/contract/runs/timeline';
import type { RunLimits } from '../../executions/deps.ts';
import type { ReachedLimit } from './event-budget.ts';

/** A row as `storeAgentEvents` reads it. */
export interface EventRow {
  /** A row with `event_type` belongs to the timeline; a row without it belongs to the conversation. */
  readonly event_type?: TimelineEventType;
  readonly occurred_at: string;
  readonly event: object;
}

const timelineTypes: Partial<Record<AgentEvent['type'], TimelineEventType>> = {
  setup_step_started: 'setup_step_started',
  setup_step_finished: 'setup_step_finished',
  check_started: 'check_started',
  check_finished: 'check_finished',
};

/** Returns the conversation step of an event; undefined if the event has no step or belongs to the timeline. */
export const stepOf = (event: AgentEvent): string | undefined =>
  'step_id' in event && !timelineTypes[event.type] ? event.step_id : undefined;

const rfc3339Utc = /^\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])T([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d{1,9})?Z$/;

/** Returns the event's time in RFC 3339 format and in UTC, or `now` if the event has no valid time of the years 1 to 9999. */
export function timeOf(event: AgentEvent, now: Date): string {
  const time = new Date(event.occurred_at);
  const year = time.getUTCFullYear();
  return (year >= 1 && year <= 9999 ? time : now).toISOString();
}

/** Returns the row of an event. The time in the row is in UTC, because clients read it; the sandbox may use another time zone. */
export function rowOf(event: AgentEvent, now: Date): EventRow {
  const { seq: _seq, ...withoutSeq } = event;
  const time = timeOf(event, now);
  const stored = { ...withoutSeq, occurred_at: rfc3339Utc.test(event.occurred_at) ? event.occurred_at : time };
  const eventType = timelineTypes[event.type];
  if (eventType) {
    const { type: _type, occurred_at: _at, ...payload } = stored;
    return { event_type: eventType, occurred_at: time, event: payload };
  }
  if (event.type !== 'blocked') return { occurred_at: time, event: stored };
  // Leave out `resume`, because only the agent needs it.
  const { resume: _, ...request } = event.request;
  return { occurred_at: time, event: { ...stored, request } };
}

const inMb = (bytes: number): string => `${Math.round(bytes / 1024 / 1024)} MB`;

/** Returns the limit that was reached, in bytes, and a sentence that names this limit. */
const reachedLimit = (reached: ReachedLimit, ofRun: { bytes: number; full: string }, { teamBytes }: RunLimits) =>
  reached === 'run'
    ? { limit_bytes: ofRun.bytes, full: ofRun.full }
    : {
        limit_bytes: teamBytes,
        full: `All that the team stores has reached ${inMb(teamBytes)} (RUNYARD_TEAM_STORAGE_MB).`,
      };

/**
 * Returns the rows that report that the conversation has reached its limit: one row for the timeline and, if a step is known, one row for
 * the conversation.
 */
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

/** Returns the two reports that the transcript has reached its limit: a row of the timeline, and the last line of the transcript. */
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
