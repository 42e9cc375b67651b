/** Server-sent events over fetch, because EventSource cannot send a key. */

import { endOfStream, LiveEvent, TeamLiveEvent } from '@runyard/contract/runs/live-events';
import { isTerminal } from '@runyard/contract/runs/run-states';
import { backoffMs, delay } from '@runyard/system/backoff';
import type { z } from 'zod';
import { ApiError, ConnectionError, EventsGoneError } from './api-error.ts';
import { readEventStream } from './event-stream.ts';
import { watchSilence } from './silence.ts';

/** One event of a stream. */
export interface ReceivedEvent<E = LiveEvent> {
  /** Given as `lastEventId`, it continues the stream after this event. */
  readonly id: string;
  readonly event: E;
}

/** Longest time without a byte before the client reconnects: the service sends a heartbeat every 15 s. */
const silenceMs = 60_000;
/** Wait before the first reconnection, until the service sends another time. */
const firstDelayMs = 200;
const maxDelayMs = 5_000;

/** Decodes the body and calls `alive` for each chunk. */
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

export interface RunFollowOptions extends FollowOptions {
  /** False: the stream ends after the events that exist now. */
  readonly follow?: boolean;
}

/** Opens the stream once. Throws ApiError if the service refuses. */
type Open = (headers: Record<string, string>, signal: AbortSignal) => Promise<Response>;

/** Follows a run until it has ended or the service ends the stream; see `follow`. */
export const followRunEvents = (open: Open, options: FollowOptions): AsyncGenerator<ReceivedEvent> =>
  // Later events belong to the sandbox of a failed setup, which stays open for debugging.
  follow(open, options, LiveEvent, (event) => event.type === 'state' && isTerminal(event.state));

/** Follows the runs of a team until the signal is aborted; see `follow`. */
export const followTeamEvents = (open: Open, options: FollowOptions): AsyncGenerator<ReceivedEvent<TeamLiveEvent>> =>
  follow(open, options, TeamLiveEvent, () => undefined);

/**
 * Yields the events of a stream and reconnects after the last event when the connection breaks. Skips events of types that this client
 * does not know. `endsWith` returns whether the stream ends with this event; undefined: it may or may not.
 * @throws EventsGoneError if the service no longer keeps the events after the last one; ApiError if the service refuses; the signal's
 * reason
 */
async function* follow<E>(
  open: Open,
  options: FollowOptions,
  schema: z.ZodType<E>,
  endsWith: (event: E) => boolean | undefined,
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
      for await (const part of readEventStream(decoded(response.body, silence.heard))) {
        if (part.type === 'id') lastId = part.id;
        if (part.type === 'retry') retryMs = part.ms;
        if (part.type === 'comment' && part.text === endOfStream) hasEnded = true;
        if (part.type !== 'event') continue;
        failures = 0;
        const parsed = schema.safeParse(JSON.parse(part.data));
        if (!parsed.success) continue;
        hasEnded = endsWith(parsed.data) ?? hasEnded;
        yield { id: lastId, event: parsed.data };
      }
    } catch (error) {
      options.signal?.throwIfAborted();
      if (error instanceof ApiError && error.status === 410) throw new EventsGoneError(error.problem);
      if (error instanceof ApiError && !error.retryable) throw error;
    } finally {
      silence.stop();
    }
    if (!hasEnded) {
      // The first wait is the service's; later waits are longer. Random, so that clients do not reconnect together.
      const longest = Math.max(retryMs, maxDelayMs);
      await delay(backoffMs({ firstMs: retryMs, longestMs: longest }, failures + 1), options.signal);
      failures += 1;
    }
  }
}
