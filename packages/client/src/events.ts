/** Server-sent events over fetch, because EventSource cannot send a key. */
import { LiveEvent } from '@runyard/contract/live-events';
import { isTerminal } from '@runyard/contract/states';
import { ApiError, ConnectionError } from './api-error.ts';
import { delay } from './delay.ts';

/** One event of a run's stream. */
export interface ReceivedEvent {
  /** Continues the stream behind this event when given as `lastEventId`. */
  readonly id: string;
  readonly event: LiveEvent;
}

/** The stream is alive as long as something arrives: the service sends a heartbeat every 15 s. */
const silenceMs = 60_000;
const maxDelayMs = 5_000;

interface Frame {
  readonly id: string | undefined;
  readonly data: string;
}

/** Splits a stream of text into the frames of the HTML standard's event stream, as far as this service uses it. */
export async function* readFrames(chunks: AsyncIterable<string>): AsyncGenerator<Frame> {
  let rest = '';
  for await (const chunk of chunks) {
    const texts = (rest + chunk).split('\n\n');
    rest = texts.pop() ?? '';
    for (const text of texts) {
      const lines = text.split('\n');
      const values = (name: string) =>
        lines
          .filter((line) => line.startsWith(`${name}:`))
          .map((line) => line.slice(name.length + 1).replace(/^ /, ''));
      const data = values('data');
      if (data.length > 0) yield { id: values('id').at(-1), data: data.join('\n') };
    }
  }
}

async function* decoded(body: ReadableStream<Uint8Array>, alive: () => void): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  for await (const chunk of body) {
    alive();
    yield decoder.decode(chunk, { stream: true });
  }
}

export interface FollowOptions {
  readonly lastEventId?: string;
  readonly signal?: AbortSignal;
}

/**
 * Follows a run until it has ended. Reconnects behind the last event when the connection breaks; events of kinds that
 * this client does not know are skipped. Throws ApiError where the service refuses, and the signal's reason.
 */
export async function* followEvents(
  open: (headers: Record<string, string>, signal: AbortSignal) => Promise<Response>,
  options: FollowOptions,
): AsyncGenerator<ReceivedEvent> {
  let lastId = options.lastEventId ?? '';
  let hasEnded = false;
  let failures = 0;
  while (!hasEnded) {
    const silent = new AbortController();
    const signal = options.signal ? AbortSignal.any([options.signal, silent.signal]) : silent.signal;
    let timer = setTimeout(() => silent.abort(), silenceMs);
    const alive = () => {
      clearTimeout(timer);
      timer = setTimeout(() => silent.abort(), silenceMs);
    };
    try {
      const response = await open(lastId ? { 'last-event-id': lastId } : {}, signal);
      if (!response.body) throw new ConnectionError('the event stream has no body');
      for await (const frame of readFrames(decoded(response.body, alive))) {
        failures = 0;
        lastId = frame.id ?? lastId;
        const parsed = LiveEvent.safeParse(JSON.parse(frame.data));
        if (!parsed.success) continue;
        hasEnded = parsed.data.type === 'state' ? isTerminal(parsed.data.state) : hasEnded;
        yield { id: lastId, event: parsed.data };
      }
    } catch (error) {
      options.signal?.throwIfAborted();
      if (error instanceof ApiError && !error.retryable) throw error;
    } finally {
      clearTimeout(timer);
    }
    if (!hasEnded) {
      failures += 1;
      const waitMs = Math.min(100 * 2 ** failures, maxDelayMs) * (0.5 + Math.random() / 2);
      await delay(waitMs, options.signal);
    }
  }
}
