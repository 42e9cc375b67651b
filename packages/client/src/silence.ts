/** Detects a connection on which no data arrives for too long, and aborts a signal. */
export interface Silence {
  readonly signal: AbortSignal;
  /** Restarts the time limit. Must be called whenever data arrives. */
  readonly heard: () => void;
  readonly stop: () => void;
}

/** Returns a watch whose signal aborts when `ms` milliseconds pass without a call of `heard`. */
export function watchSilence(ms: number): Silence {
  const controller = new AbortController();
  const begin = () => setTimeout(() => controller.abort(new Error(`nothing came for ${ms} ms`)), ms);
  let timer = begin();
  const stop = () => clearTimeout(timer);
  return {
    signal: controller.signal,
    stop,
    heard: () => {
      stop();
      timer = begin();
    },
  };
}

/** Maximum size of a body that is read as a whole. The answers of the service are much smaller. */
const maxBodyBytes = 256 * 1024 * 1024;

/** Reads a body as text and calls `heard` for each chunk. Throws if the body is cut, or has more than 268,435,456 bytes. */
export async function readText(
  body: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
  heard: () => void,
): Promise<string> {
  const decoder = new TextDecoder();
  let text = '';
  let bytes = 0;
  for await (const chunk of body) {
    heard();
    bytes += chunk.length;
    if (bytes > maxBodyBytes) throw new Error('the answer is too large');
    text += decoder.decode(chunk, { stream: true });
  }
  return text + decoder.decode();
}
