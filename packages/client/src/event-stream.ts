import { createParser } from 'eventsource-parser';

/** One part of a server-sent event stream (HTML standard, section 9.2). */
export type StreamPart =
  /**
   * Id of the last event. A client can continue the stream after this event. The id is yielded before the event of the same block. A
   * block may have an id but no event.
   */
  | { readonly type: 'id'; readonly id: string }
  | { readonly type: 'event'; readonly data: string }
  /** Time to wait before connecting again. */
  | { readonly type: 'retry'; readonly ms: number }
  /** The service sends an empty comment as a heartbeat. */
  | { readonly type: 'comment'; readonly text: string };

/** The stream has a block that is too large to read. */
export class UnreadableStream extends Error {}

/** Longest accepted time. Longer times are ignored, because a timer can wait at most 2^31 ms. */
const longestRetryMs = 999_999_999;

/** Maximum number of characters in one block. The events of the service are much smaller. */
const maxBlockCharacters = 16 * 1024 * 1024;

/**
 * Yields each part of an event stream as soon as the part is complete. Drops the last block if no empty line follows it.
 * @throws UnreadableStream if a block has more than 16,777,216 characters
 */
export async function* readEventStream(chunks: AsyncIterable<string>): AsyncGenerator<StreamPart> {
  let parts: StreamPart[] = [];
  const parser = createParser({
    onId: (id) => parts.push({ type: 'id', id }),
    onEvent: ({ data }) => parts.push({ type: 'event', data }),
    onRetry: (ms) => {
      if (ms <= longestRetryMs) parts.push({ type: 'retry', ms });
    },
    onComment: (text) => parts.push({ type: 'comment', text }),
    onError: ({ type, message }) => {
      if (type === 'max-buffer-size-exceeded')
        throw new UnreadableStream(`the event stream cannot be read: ${message}`);
    },
    maxBufferSize: maxBlockCharacters,
  });
  for await (const chunk of chunks) {
    parser.feed(chunk);
    yield* parts;
    parts = [];
  }
}
