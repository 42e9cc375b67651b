/** Server-sent events over fetch, because EventSource cannot send a key. Loads no schemas: `events.ts` uses them to check events. */

import { endOfStream } from '@runyard/contract/runs/run-states';
import { backoffMs, delay } from '@runyard/system/backoff';
import { ApiError, ConnectionError, EventsGoneError } from './api-error.ts';
import { readEventStream, UnreadableStream } from './event-stream.ts';
import { watchSilence } from './silence.ts';

/** One event of a stream. */
export interface ReceivedEvent<E> {
  /** Id of the event. A stream with this id as `lastEventId` continues after the event. */
  readonly id: string;
  readonly event: E;
}

/** After this time without a byte, the client reconnects. The service sends a heartbeat every 15 s. */
const silenceMs = 60_000;
/** Wait before the first attempt to reconnect. The service can replace this time with a `retry` line in the stream. */
const firstDelayMs = 200;
const maxDelayMs = 5_000;

/** Decodes the body as text and calls `alive` for each chunk. */
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

/** Opens the stream once. Throws ApiError if the service refuses. */
export type Open = (headers: Record<string, string>, signal: AbortSignal) => Promise<Response>;

/** The functions with which the caller of `follow` parses events. */
export interface Reading<E> {
  /** Returns the event; undefined if the client does not know its type and should skip it. */
  readonly parse: (data: unknown) => E | undefined;
  /** Returns whether the stream ends with this event; undefined if this is unknown. */
  readonly endsWith: (event: E) => boolean | undefined;
  /** Called when a connection has opened. */
  readonly onOpen?: () => void;
  /** Called when a connection has broken, with the milliseconds until the next attempt. */
  readonly onWait?: (ms: number) => void;
}

/**
 * Yields the events of a stream. When the connection breaks, reconnects and continues after the last event that arrived.
 * @throws EventsGoneError if the service has deleted events that the client has not received; ApiError if the service refuses the stream;
 * ConnectionError if a block of the stream is too large to read; the reason of the signal if the signal is aborted
 */
export async function* follow<E>(
  open: Open,
  options: FollowOptions,
  { parse, endsWith, onOpen, onWait }: Reading<E>,
): AsyncGenerator<ReceivedEvent<E>> {
  let lastId = options.lastEventId ?? '';
  let hasEnded = false;
  let failures = 0;
  let retryMs = firstDelayMs;
  while (!hasEnded) {
    const silence = watchSilence(silenceMs);
    const signal = options.signal ? AbortSignal.any([options.signal, silence.signal]) : silence.signal;
    try {
      const response = await open(lastId ? { 'last-event-id': lastId } : {}, signal);
      if (!response.body) throw new ConnectionError('the event stream has no body');
      onOpen?.();
      for await (const part of readEventStream(decoded(response.body, silence.heard))) {
        if (part.type === 'id') lastId = part.id;
        if (part.type === 'retry') retryMs = part.ms;
        if (part.type === 'comment' && part.text === endOfStream) hasEnded = true;
        if (part.type !== 'event') continue;
        failures = 0;
        const event = parse(JSON.parse(part.data));
        if (event === undefined) continue;
        hasEnded = endsWith(event) ?? hasEnded;
        yield { id: lastId, event };
      }
    } catch (error) {
      options.signal?.throwIfAborted();
      if (error instanceof ApiError && error.status === 410) throw new EventsGoneError(error.problem);
      if (error instanceof UnreadableStream) throw new ConnectionError(error.message, { cause: error });
      if (error instanceof ApiError && !error.retryable) throw error;
    } finally {
      silence.stop();
    }
    if (!hasEnded) {
      // The service can set the first wait (`retry`); later waits are longer. Jitter prevents all clients from reconnecting at the same
      // time.
      const longest = Math.max(retryMs, maxDelayMs);
      const waitMs = backoffMs({ firstMs: retryMs, longestMs: longest }, failures + 1);
      onWait?.(waitMs);
      await delay(waitMs, options.signal);
      failures += 1;
    }
  }
}
