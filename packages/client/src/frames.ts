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

function parseFrame(lines: readonly string[]): Frame {
  const values = new Map<string, string[]>();
  for (const line of lines) {
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

/**
 * Splits a stream of text into frames; what is cut off at its end is none. A line ends with LF, CR LF or CR (HTML, 9.2.5): a proxy
 * may write another end than the service.
 */
export async function* readFrames(chunks: AsyncIterable<string>): AsyncGenerator<Frame> {
  let rest = '';
  let lines: string[] = [];
  let endsInCr = false;
  for await (const chunk of chunks) {
    if (chunk === '') continue;
    // The LF of a CR LF between whose halves the stream was cut.
    const fresh = endsInCr && chunk.startsWith('\n') ? chunk.slice(1) : chunk;
    endsInCr = chunk.endsWith('\r');
    const parts = (rest + fresh).split(/\r\n|\n|\r/);
    rest = parts.pop() ?? '';
    for (const line of parts) {
      if (line !== '') {
        lines.push(line);
      } else if (lines.length > 0) {
        yield parseFrame(lines);
        lines = [];
      }
    }
  }
}
