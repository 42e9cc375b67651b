import type { AgentEvent, AgentEventBody } from '@runyard/contract/runs/agent-events';
import { storableJson } from '@runyard/contract/wire/storable-json';
import { backoffMs, delay } from '@runyard/system/backoff';
import type { ServiceClient } from '../service/client.ts';
import { ServiceRefusal } from '../service/errors.ts';
import type { WaitingEvent } from './waiting-events.ts';

interface SentEvent {
  seq: number;
  type: AgentEventBody['type'];
  occurredAt: string;
  json: string;
  /** Number of times that the event was replaced. */
  replaced: number;
}

export interface UnacknowledgedOptions {
  readonly client: Pick<ServiceClient, 'sendEvents'>;
  readonly signal: AbortSignal;
  readonly redact: <T>(value: T) => T;
  readonly onRefused: ((event: AgentEvent, reason: string) => void) | undefined;
}

/** The events that have a number, and that the service has not acknowledged yet. */
export interface Unacknowledged {
  readonly length: number;
  /** Gives the next numbers to the events. Called only while no event is unacknowledged. */
  number(events: readonly WaitingEvent[]): void;
  /** Sends the events until all are acknowledged. Rejects if the service does not accept any replacement of an event. */
  send(): Promise<void>;
  /** Returns the events as the service gets them. */
  read(): AgentEvent[];
  /** Forgets the events up to this number. */
  acknowledge(seq: number): void;
}

export function unacknowledgedEvents({ client, signal, redact, onRefused }: UnacknowledgedOptions): Unacknowledged {
  let events: SentEvent[] = [];
  let nextSeq = 1;

  function acknowledge(seq: number): void {
    events = events.filter((event) => event.seq > seq);
  }

  /**
   * Sends `batch`, which contains the first unacknowledged events, until all its events are acknowledged. If the service refuses a
   * batch, sends the two halves of the batch separately, and repeats this until it has found the refused event.
   */
  async function sendBatch(batch: readonly SentEvent[]): Promise<void> {
    const last = batch.at(-1);
    for (let attempt = 0; last !== undefined && events[0] !== undefined && events[0].seq <= last.seq; attempt++) {
      const rest = events.filter((event) => event.seq <= last.seq);
      try {
        const body = `{"events":[${rest.map((event) => event.json).join(',')}]}`;
        const { acknowledged } = await client.sendEvents(body, { signal });
        const before = events.length;
        acknowledge(acknowledged);
        // Wait, because repeated answers that acknowledge nothing new would otherwise cause a busy loop.
        if (events.length === before) await delay(backoffMs({ firstMs: 50, longestMs: 5_000 }, attempt + 1), signal);
        else attempt = 0;
      } catch (error) {
        if (!(error instanceof ServiceRefusal)) throw error;
        const [only, second] = rest;
        if (only !== undefined && second === undefined) replaceRefused(only, error);
        else {
          await sendBatch(rest.slice(0, Math.ceil(rest.length / 2)));
          attempt = 0;
        }
      }
    }
  }

  function replaceRefused(event: SentEvent, refusal: ServiceRefusal): void {
    process.stderr.write(`agent: event ${event.seq} (${event.type}) was refused: ${refusal.message}\n`);
    if (event.replaced === 0) onRefused?.(JSON.parse(event.json) as AgentEvent, refusal.detail);
    const sent = replacementOf(event, refusal);
    events = events.map((other) => (other === event ? sent : other));
  }

  return {
    get length() {
      return events.length;
    },
    number(waiting) {
      events = waiting.map(({ body, occurredAt }) => {
        const seq = nextSeq++;
        const json = storableJson({ seq, occurred_at: occurredAt, ...redact(body) });
        return { seq, type: body.type, occurredAt, json, replaced: 0 };
      });
    },
    send: () => sendBatch(events),
    read: () => events.map((event) => JSON.parse(event.json)),
    acknowledge,
  };
}

/**
 * Returns the replacement of a refused event: a notice, and for a refused notice a simpler event, because the service accepts no gap in the
 * numbers. Throws the refusal if there is no simpler event.
 */
function replacementOf(event: SentEvent, refusal: ServiceRefusal): SentEvent {
  const base = { seq: event.seq, occurred_at: event.occurredAt };
  const data = { type: event.type, bytes: event.json.length, reason: refusal.message };
  const replacements: readonly AgentEvent[] = [
    { ...base, type: 'notice', step_id: stepIdOf(event), name: 'event_refused', data },
    { ...base, type: 'transcript', line: storableJson({ event_refused: data }) },
    { ...base, type: 'transcript', line: '{}' },
  ];
  const replacement = replacements[event.replaced];
  if (replacement === undefined) throw refusal;
  return { ...event, json: storableJson(replacement), replaced: event.replaced + 1 };
}

function stepIdOf(event: SentEvent): string {
  const { step_id } = JSON.parse(event.json) as { step_id?: unknown };
  return typeof step_id === 'string' ? step_id : '';
}
