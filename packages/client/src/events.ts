/** Server-sent events over fetch, because EventSource cannot send a key. */

import { backoffMs, delay } from '@runyard/contract/backoff';
import { endOfStream, LiveEvent, TeamLiveEvent } from '@runyard/contract/live-events';
import { isTerminal } from '@runyard/contract/run-states';
import type { z } from 'zod';
import { ApiError, ConnectionError, EventsGoneError } from './api-error.ts';
import { readFrames } from './frames.ts';
import { watchSilence } from './silence.ts';

/** One event of a stream. */
export interface ReceivedEvent<E = LiveEvent> {
  /** Continues the stream behind this event when given as `lastEventId`. */
  readonly id: string;
  readonly event: E;
}

/** The stream is alive as long as something arrives: the service sends a heartbeat every 15 s. */
const silenceMs = 60_000;
/** Until the service has said another time. */
const firstDelayMs = 200;
const maxDelayMs = 5_000;

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
  /** False: ends with what there is by now. */
  readonly follow?: boolean;
}

/** Opens the stream once; throws ApiError where the service refuses. */
type Open = (headers: Record<string, string>, signal: AbortSignal) => Promise<Response>;

/** Follows a run until it has ended, or what `open` asks for is given; see `follow`. */
export const followRunEvents = (open: Open, options: FollowOptions): AsyncGenerator<ReceivedEvent> =>
  // What comes behind the end is of the sandbox of a failed setup, in which something may go on.
  follow(open, options, LiveEvent, (event) => event.type === 'state' && isTerminal(event.state));

/** Follows the runs of a team until the signal is aborted; see `follow`. */
export const followTeamEvents = (open: Open, options: FollowOptions): AsyncGenerator<ReceivedEvent<TeamLiveEvent>> =>
  follow(open, options, TeamLiveEvent, () => undefined);

/**
 * Reconnects behind the last event when the connection breaks; events of kinds that this client does not know are
 * skipped. `endsWith`: the stream ends with this event, does not, or undefined: the event says nothing about it.
 * @throws EventsGoneError where events behind the last one are not kept any more; ApiError where the service refuses;
 *   the signal's reason
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
      for await (const frame of readFrames(decoded(response.body, silence.heard))) {
        lastId = frame.id ?? lastId;
        retryMs = frame.retryMs ?? retryMs;
        if (frame.comment === endOfStream) hasEnded = true;
        if (frame.data === undefined) continue;
        failures = 0;
        const parsed = schema.safeParse(JSON.parse(frame.data));
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
      // At first as long as the service says, then longer; never all clients in the same moment.
      const longest = Math.max(retryMs, maxDelayMs);
      await delay(backoffMs({ firstMs: retryMs, longestMs: longest }, failures + 1), options.signal);
      failures += 1;
    }
  }
}
