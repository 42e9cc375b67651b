import { createParser } from 'eventsource-parser';

/** One part of a server-sent event stream (HTML standard, section 9.2). */
export type StreamPart =
  /**
   * The stream can be continued after this id. The id comes before the event of the same block; a block may have an id without an event.
   */
  | { readonly type: 'id'; readonly id: string }
  | { readonly type: 'event'; readonly data: string }
  /** Time to wait before connecting again. */
  | { readonly type: 'retry'; readonly ms: number }
  /** The service sends an empty comment as a heartbeat. */
  | { readonly type: 'comment'; readonly text: string };

/** Longer waits are ignored: a timer takes at most 2^31 ms. */
const longestRetryMs = 999_999_999;

/** Reads the parts of an event stream as they become complete. A block without its final empty line is dropped. */
export async function* readEventStream(chunks: AsyncIterable<string>): AsyncGenerator<StreamPart> {
  let parts: StreamPart[] = [];
  const parser = createParser({
    onId: (id) => parts.push({ type: 'id', id }),
    onEvent: ({ data }) => parts.push({ type: 'event', data }),
    onRetry: (ms) => {
      if (ms <= longestRetryMs) parts.push({ type: 'retry', ms });
    },
    onComment: (text) => parts.push({ type: 'comment', text }),
  });
  for await (const chunk of chunks) {
    parser.feed(chunk);
    yield* parts;
    parts = [];
  }
}
