/** Turns events of an agent into rows of the timeline and of the conversation. */
import type { AgentEvent } from '@runyard/contract/runs/agent-events';
import type { TimelineEventType } from '@runyard/contract/runs/timeline';

/** A row as `storeAgentEvents` reads it. */
export interface EventRow {
  /** Present: the row belongs to the timeline; absent: to the conversation. */
  readonly event_type?: TimelineEventType;
  readonly occurred_at: string;
  readonly event: object;
}

const timelineTypes: Partial<Record<AgentEvent['type'], TimelineEventType>> = {
  setup_step_started: 'setup_step_started',
  setup_step_finished: 'setup_step_finished',
};

/** Returns the conversation step that an event names; undefined where it names none or belongs to the timeline. */
export const stepOf = (event: AgentEvent): string | undefined =>
  'step_id' in event && !timelineTypes[event.type] ? event.step_id : undefined;

const rfc3339Utc = /^\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])T([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d{1,9})?Z$/;

/** Returns the time that the sandbox wrote as RFC 3339 in UTC, or `now` where that is no time of the years 1 to 9999. */
export function timeOf(event: AgentEvent, now: Date): string {
  const time = new Date(event.occurred_at);
  const year = time.getUTCFullYear();
  return (year >= 1 && year <= 9999 ? time : now).toISOString();
}

/** Returns the row of an event. Its time is RFC 3339 in UTC, whatever the sandbox wrote: clients read it. */
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
  // Only the agent needs `resume`.
  const { resume: _, ...request } = event.request;
  return { occurred_at: time, event: { ...stored, request } };
}
