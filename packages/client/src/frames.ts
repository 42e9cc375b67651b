/** The HTML standard's event stream, as far as this service uses it. */

/** What stands between two empty lines. */
export interface Frame {
  /** Continues the stream behind it. */
  readonly id: string | undefined;
  /** undefined: no event. */
  readonly data: string | undefined;
  /** Milliseconds to wait before connecting again. */
  readonly retryMs: number | undefined;
  /** A heartbeat is the empty one. */
  readonly comment: string | undefined;
}

function parseFrame(text: string): Frame {
  const values = new Map<string, string[]>();
  for (const line of text.split('\n')) {
    const colon = line.indexOf(':');
    const name = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? '' : line.slice(colon + 1).replace(/^ /, '');
    values.set(name, [...(values.get(name) ?? []), value]);
  }
  const retry = values.get('retry')?.at(-1);
  return {
    id: values.get('id')?.at(-1),
    data: values.get('data')?.join('\n'),
    retryMs: retry !== undefined && /^\d{1,9}$/.test(retry) ? Number(retry) : undefined,
    comment: values.get('')?.at(-1),
  };
}

/** Splits a stream of text into frames; what is cut off at its end is none. */
export async function* readFrames(chunks: AsyncIterable<string>): AsyncGenerator<Frame> {
  let rest = '';
  for await (const chunk of chunks) {
    const texts = (rest + chunk).split('\n\n');
    rest = texts.pop() ?? '';
    for (const text of texts) yield parseFrame(text);
  }
}
