import type { AgentEventBody } from '@runyard/contract/runs/agent-events';

/** An event that was not sent yet. The event has a time but no number, so the queue can still add text to it. */
export interface WaitingEvent {
  body: AgentEventBody;
  occurredAt: string;
  /** Approximate size of the event in memory and in a request. */
  bytes: number;
}

/** No text is added to an event that is larger than this. */
const maxCoalescedBytes = 32 * 1024;
const envelopeBytes = 160;

/**
 * Creates the queue of events that wait to be numbered and sent. While the events wait, the queue joins pieces of one message or of
 * one action. It does so only if no other event of the conversation is between the pieces; transcript lines do not count.
 */
export function waitingEvents() {
  let events: WaitingEvent[] = [];
  let bytes = 0;
  const joinable = new Map<string, WaitingEvent>();

  return {
    get bytes() {
      return bytes;
    },
    get length() {
      return events.length;
    },
    add(body: AgentEventBody, now: Date): void {
      const key = joinKey(body);
      if (key === undefined) {
        if (body.type !== 'transcript') joinable.clear();
      } else {
        const earlier = joinable.get(key);
        if (earlier !== undefined && earlier.bytes < maxCoalescedBytes && join(earlier, body)) {
          const added = textBytes(body);
          earlier.bytes += added;
          bytes += added;
          return;
        }
      }
      const event = { body: { ...body }, occurredAt: now.toISOString(), bytes: envelopeBytes + textBytes(body) };
      events.push(event);
      bytes += event.bytes;
      if (key !== undefined) joinable.set(key, event);
    },
    /** Removes and returns the first events: at most `maxBytes` and `maxCount`, but at least one event. */
    take(maxBytes: number, maxCount: number): WaitingEvent[] {
      let count = 0;
      let size = 0;
      for (const event of events) {
        if (count > 0 && (size + event.bytes > maxBytes || count === maxCount)) break;
        size += event.bytes;
        count++;
      }
      const taken = events.slice(0, count);
      events = events.slice(count);
      bytes -= size;
      joinable.clear();
      return taken;
    },
  };
}

/**
 * Returns the key of the stream to which an event adds text. Undefined for events without text, and for a piece without text, because such
 * a piece must stay separate: it says that the stream pauses.
 */
export function joinKey(body: AgentEventBody): string | undefined {
  if ('text' in body && body.text === '') return undefined;
  switch (body.type) {
    case 'text':
      return `text ${body.role} ${body.step_id} ${body.message_id}`;
    case 'action_output':
      return `output ${body.action_id}`;
    default:
      return undefined;
  }
}

function join(earlier: WaitingEvent, later: AgentEventBody): boolean {
  if (earlier.body.type === 'text' && later.type === 'text') earlier.body.text += later.text;
  else if (earlier.body.type === 'action_output' && later.type === 'action_output') earlier.body.text += later.text;
  else return false;
  return true;
}

function textBytes(body: AgentEventBody): number {
  switch (body.type) {
    case 'text':
    case 'action_output':
      return body.text.length;
    case 'transcript':
      return body.line.length;
    default:
      return JSON.stringify(body).length;
  }
}
