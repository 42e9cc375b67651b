import type { AgentEvent, AgentEventBody } from '@runyard/contract/runs/agent-events';
import { storableJson } from '@runyard/contract/wire/storable-json';
import { backoffMs, delay } from '@runyard/system/backoff';
import type { ServiceClient } from '../service/client.ts';
import { ServiceRefusal, Superseded } from '../service/errors.ts';
import { joinKey, waitingEvents } from './waiting-events.ts';

export interface ReporterOptions {
  client: Pick<ServiceClient, 'sendEvents'>;
  /** Aborts all requests. The caller aborts it when the execution was superseded or the time for the last reports is over. */
  signal: AbortSignal;
  /** Called once, when the service reports that this execution is over. */
  onSuperseded: () => void;
  /** Called when the service refuses an event permanently, with the reason. */
  onRefused?: (event: AgentEvent, reason: string) => void;
  /** Called with each event when it is emitted. */
  onEmit?: (event: AgentEventBody) => void;
  /** Removes the secrets of the run from an event. */
  redact?: <T>(value: T) => T;
  flushDelayMs?: number;
  /** Time without a further piece after which a text or an output pauses. */
  pauseMs?: number;
  batchBytes?: number;
  /** Above this number of waiting bytes, producers pause until half of the bytes are sent. */
  highWaterBytes?: number;
  clock?: () => Date;
}

/** Numbers events, sends them in batches and keeps each event until the service acknowledges it. */
export interface Reporter {
  emit(event: AgentEventBody): void;
  /** True while producers must wait for `ready()`. No event is dropped. */
  readonly saturated: boolean;
  /** Resolves when producers may continue, or when the reporter has stopped. */
  ready(): Promise<void>;
  /** Resolves when every event so far is acknowledged; rejects if the reporter has stopped. */
  flush(): Promise<void>;
  /**
   * Returns the events that are not sent yet, if they fit into one batch, so that the report of a turn can include them. The reporter then
   * sends no events until the caller calls `settle` with the number of the last event that the service stored from that report. Rejects if
   * the reporter has stopped.
   */
  takeRest(): Promise<RestOfEvents>;
}

export interface RestOfEvents {
  readonly events: AgentEvent[];
  /** `acknowledged`: number of the last event that the service stored; 0: it stored no event. */
  settle(acknowledged: number): void;
}

interface SentEvent {
  seq: number;
  type: AgentEventBody['type'];
  occurredAt: string;
  json: string;
  /** Number of times that the event was replaced. */
  replaced: number;
}

function stepIdOf(event: SentEvent): string {
  const { step_id } = JSON.parse(event.json) as { step_id?: unknown };
  return typeof step_id === 'string' ? step_id : '';
}

/** Types of events that are sent at once, without waiting for more events, because they start a time limit or change what a person sees. */
const urgent: ReadonlySet<AgentEventBody['type']> = new Set([
  'agent_started',
  'turn_started',
  'turn_finished',
  'blocked',
  'decided',
]);
const maxBatchEvents = 1000;

export function startReporter(options: ReporterOptions): Reporter {
  const {
    client,
    signal,
    flushDelayMs = 30,
    pauseMs = 200,
    batchBytes = 256 * 1024,
    highWaterBytes = 8 * 1024 * 1024,
  } = options;
  const redact = options.redact ?? (<T>(value: T) => value);
  const clock = options.clock ?? (() => new Date());
  const waiting = waitingEvents();
  let unacknowledged: SentEvent[] = [];
  let nextSeq = 1;
  let timer: NodeJS.Timeout | undefined;
  let sending = false;
  let saturated = false;
  let urgentWaiting = false;
  let failure: unknown;
  let roomWaiters: (() => void)[] = [];
  /** Functions to call when no batch is being sent. */
  const idleWaiters: (() => void)[] = [];
  const flushWaiters: { resolve: () => void; reject: (reason: unknown) => void }[] = [];

  const stopped = () => failure !== undefined;
  const stop = (reason: unknown) => {
    failure ??= reason ?? new Error('the reporter was stopped');
    clearTimeout(timer);
    forgetPauses();
    releaseRoom();
    for (const waiter of flushWaiters.splice(0)) waiter.reject(failure);
  };
  signal.addEventListener('abort', () => stop(signal.reason), { once: true });

  function add(event: AgentEventBody): void {
    waiting.add(event, clock());
    if (waiting.bytes > highWaterBytes) saturated = true;
    if (urgent.has(event.type)) urgentWaiting = true;
    if (dueNow()) schedule(0);
    else if (timer === undefined) schedule(flushDelayMs);
  }

  /** Timers of the streams whose last piece may be shown incompletely, by the key of the stream. */
  const pauses = new Map<string, NodeJS.Timeout>();

  function forgetPauses(): void {
    for (const pause of pauses.values()) clearTimeout(pause);
    pauses.clear();
  }

  /**
   * Adds a piece without text if no other piece follows for `pauseMs`. The reason: the service holds back the end of a text that may be the
   * beginning of a secret until it gets the next piece. An empty piece makes the service show a short end. A text that ends with white
   * space needs no such piece.
   */
  function watchForPause(event: AgentEventBody): void {
    if (event.type === 'turn_finished') forgetPauses();
    const key = joinKey(event);
    if (key === undefined || !(event.type === 'text' || event.type === 'action_output')) return;
    clearTimeout(pauses.get(key));
    pauses.delete(key);
    if (/\s$/.test(event.text)) return;
    const pause = () => {
      pauses.delete(key);
      if (!stopped()) add({ ...event, text: '' });
    };
    pauses.set(key, setTimeout(pause, pauseMs).unref());
  }

  function releaseRoom(): void {
    saturated = false;
    const waiters = roomWaiters;
    roomWaiters = [];
    for (const resolve of waiters) resolve();
  }

  function schedule(delayMs: number): void {
    if (sending || stopped()) return;
    clearTimeout(timer);
    timer = setTimeout(() => void send(), delayMs);
  }

  async function send(): Promise<void> {
    if (sending || stopped()) return;
    sending = true;
    clearTimeout(timer);
    timer = undefined;
    try {
      do {
        // If the service did not store the events that the report of a turn took, `unacknowledged` still has these events. Send them first.
        if (unacknowledged.length === 0) number();
        await sendBatch(unacknowledged);
        if (saturated && waiting.bytes < highWaterBytes / 2) releaseRoom();
      } while (!stopped() && dueNow());
      if (waiting.length === 0 && !stopped()) for (const waiter of flushWaiters.splice(0)) waiter.resolve();
    } catch (error) {
      if (error instanceof Superseded) options.onSuperseded();
      stop(error);
    } finally {
      sending = false;
      for (const resolve of idleWaiters.splice(0)) resolve();
      if (waiting.length > 0) schedule(flushDelayMs);
    }
  }

  async function takeRest(): Promise<RestOfEvents> {
    while (sending) await new Promise<void>((resolve) => idleWaiters.push(resolve));
    if (stopped()) throw failure;
    const fits = unacknowledged.length === 0 && waiting.bytes < batchBytes && waiting.length <= maxBatchEvents;
    if (!fits || waiting.length === 0) return { events: [], settle: () => {} };
    sending = true;
    clearTimeout(timer);
    timer = undefined;
    number();
    return {
      events: unacknowledged.map((event) => JSON.parse(event.json)),
      settle(acknowledged) {
        unacknowledged = unacknowledged.filter((event) => event.seq > acknowledged);
        sending = false;
        if (unacknowledged.length > 0 || waiting.length > 0 || flushWaiters.length > 0) void send();
      },
    };
  }

  /** Returns true if the waiting events must be sent now: the batch is full, a flush waits, or an event is urgent. */
  const dueNow = () => waiting.length > 0 && (urgentWaiting || waiting.bytes >= batchBytes || flushWaiters.length > 0);

  function number(): void {
    urgentWaiting = false;
    unacknowledged = waiting.take(batchBytes, maxBatchEvents).map((event) => {
      const seq = nextSeq++;
      return {
        seq,
        type: event.body.type,
        occurredAt: event.occurredAt,
        json: storableJson({ seq, occurred_at: event.occurredAt, ...redact(event.body) }),
        replaced: 0,
      };
    });
  }

  /**
   * Sends `batch`, which contains the first unacknowledged events, until all its events are acknowledged. If the service refuses a
   * batch, sends the two halves of the batch separately, and repeats this until it has found the refused event.
   */
  async function sendBatch(batch: readonly SentEvent[]): Promise<void> {
    const last = batch.at(-1);
    for (
      let attempt = 0;
      last !== undefined && unacknowledged[0] !== undefined && unacknowledged[0].seq <= last.seq;
      attempt++
    ) {
      const rest = unacknowledged.filter((event) => event.seq <= last.seq);
      try {
        const { acknowledged } = await client.sendEvents(`{"events":[${rest.map((event) => event.json).join(',')}]}`, {
          signal,
        });
        const before = unacknowledged.length;
        unacknowledged = unacknowledged.filter((event) => event.seq > acknowledged);
        // Wait, because repeated answers that acknowledge nothing new would otherwise cause a busy loop.
        if (unacknowledged.length === before)
          await delay(backoffMs({ firstMs: 50, longestMs: 5_000 }, attempt + 1), signal);
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

  /**
   * Replaces a refused event by a notice, and a refused notice by a simpler event, because the service accepts no gap in the numbers.
   */
  function replaceRefused(event: SentEvent, refusal: ServiceRefusal): void {
    process.stderr.write(`agent: event ${event.seq} (${event.type}) was refused: ${refusal.message}\n`);
    if (event.replaced === 0) options.onRefused?.(JSON.parse(event.json) as AgentEvent, refusal.detail);
    const base = { seq: event.seq, occurred_at: event.occurredAt };
    const data = { type: event.type, bytes: event.json.length, reason: refusal.message };
    const replacements: readonly AgentEvent[] = [
      { ...base, type: 'notice', step_id: stepIdOf(event), name: 'event_refused', data },
      { ...base, type: 'transcript', line: storableJson({ event_refused: data }) },
      { ...base, type: 'transcript', line: '{}' },
    ];
    const replacement = replacements[event.replaced];
    if (replacement === undefined) throw refusal;
    const sent = { ...event, json: storableJson(replacement), replaced: event.replaced + 1 };
    unacknowledged = unacknowledged.map((other) => (other === event ? sent : other));
  }

  return {
    emit(event) {
      if (stopped()) return;
      options.onEmit?.(event);
      watchForPause(event);
      add(event);
    },
    get saturated() {
      return saturated;
    },
    ready: () => (saturated ? new Promise((resolve) => roomWaiters.push(resolve)) : Promise.resolve()),
    takeRest,
    flush: () =>
      new Promise((resolve, reject) => {
        if (stopped()) return reject(failure);
        flushWaiters.push({ resolve, reject });
        if (!sending) void send();
      }),
  };
}
