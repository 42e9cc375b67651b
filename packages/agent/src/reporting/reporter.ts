import type { AgentEvent, AgentEventBody } from '@runyard/contract/runs/agent-events';
import type { ServiceClient } from '../service/client.ts';
import { Superseded } from '../service/errors.ts';
import { watchPauses } from './pauses.ts';
import { unacknowledgedEvents } from './unacknowledged.ts';
import { waitingEvents } from './waiting-events.ts';

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
  const { signal, flushDelayMs = 30, pauseMs = 200 } = options;
  const { batchBytes = 256 * 1024, highWaterBytes = 8 * 1024 * 1024 } = options;
  const clock = options.clock ?? (() => new Date());
  const waiting = waitingEvents();
  const unacknowledged = unacknowledgedEvents({
    client: options.client,
    signal,
    redact: options.redact ?? (<T>(value: T) => value),
    onRefused: options.onRefused,
  });
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
  const pauses = watchPauses(pauseMs, (event) => {
    if (!stopped()) add(event);
  });
  const stop = (reason: unknown) => {
    failure ??= reason ?? new Error('the reporter was stopped');
    clearTimeout(timer);
    pauses.forget();
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

  /** Returns true if the waiting events must be sent now: the batch is full, a flush waits, or an event is urgent. */
  const dueNow = () => waiting.length > 0 && (urgentWaiting || waiting.bytes >= batchBytes || flushWaiters.length > 0);

  /** Stops the timer, and keeps other batches back until `sending` is false again. */
  function beginSending(): void {
    sending = true;
    clearTimeout(timer);
    timer = undefined;
  }

  function numberBatch(): void {
    urgentWaiting = false;
    unacknowledged.number(waiting.take(batchBytes, maxBatchEvents));
  }

  async function send(): Promise<void> {
    if (sending || stopped()) return;
    beginSending();
    try {
      do {
        // If the service did not store the events that the report of a turn took, `unacknowledged` still has these events. Send them first.
        if (unacknowledged.length === 0) numberBatch();
        await unacknowledged.send();
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
    beginSending();
    numberBatch();
    return {
      events: unacknowledged.read(),
      settle(acknowledged) {
        unacknowledged.acknowledge(acknowledged);
        sending = false;
        if (unacknowledged.length > 0 || waiting.length > 0 || flushWaiters.length > 0) void send();
      },
    };
  }

  return {
    emit(event) {
      if (stopped()) return;
      options.onEmit?.(event);
      pauses.observe(event);
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
