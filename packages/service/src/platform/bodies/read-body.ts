import type { Readable } from 'node:stream';

/** The lowest accepted speed of a sender. A slower body is refused, so that a body that never arrives does not keep its memory. */
export interface BodyPace {
  /** Milliseconds at the beginning in which the speed is not checked. */
  readonly graceMs: number;
  readonly bytesPerSecond: number;
}

export const defaultBodyPace: BodyPace = { graceMs: 10_000, bytesPerSecond: 32 * 1024 };

/** `cut`: the connection ended early, or the number of bytes differs from the announced one. */
export type BodyRead =
  | { readonly kind: 'body'; readonly bytes: Buffer }
  | { readonly kind: 'too_large' | 'too_slow' | 'cut' };

type Look = () => void;

/** The functions to call, by the milliseconds between two calls. Functions with the same interval share one timer. */
const looks = new Map<number, Set<Look>>();

/** Calls `look` every `everyMs` until the returned function is called. */
function lookEvery(everyMs: number, look: Look): () => void {
  const shared = looks.get(everyMs) ?? startLooking(everyMs);
  shared.add(look);
  return () => void shared.delete(look);
}

function startLooking(everyMs: number): Set<Look> {
  const shared = new Set<Look>();
  looks.set(everyMs, shared);
  const timer = setInterval(() => {
    for (const look of shared) look();
    if (shared.size > 0) return;
    clearInterval(timer);
    looks.delete(everyMs);
  }, everyMs).unref();
  return shared;
}

/**
 * Reads a whole body into a buffer of its announced size. The operating system provides the memory of the buffer only as the bytes
 * arrive. `announced` is the Content-Length, or undefined if it is unknown. After a refusal, the remaining bytes are not read.
 */
export function readBody(
  stream: Readable,
  { announced, maxBytes, pace }: { announced: number | undefined; maxBytes: number; pace: BodyPace },
): Promise<BodyRead> {
  if (announced !== undefined && announced > maxBytes) return Promise.resolve({ kind: 'too_large' });
  return new Promise((resolve) => {
    let bytes: Buffer = Buffer.alloc(0);
    let size = 0;
    const startedAt = performance.now();
    const stopLooking = lookEvery(pace.graceMs / 4, () => {
      const elapsed = performance.now() - startedAt;
      if (elapsed > pace.graceMs && size < ((elapsed - pace.graceMs) / 1000) * pace.bytesPerSecond)
        end({ kind: 'too_slow' });
    });
    const end = (result: BodyRead): void => {
      stopLooking();
      stream.off('data', take).off('end', whole).off('error', cut).off('close', cut);
      stream.pause();
      resolve(result);
    };
    const take = (chunk: Buffer): void => {
      const needed = size + chunk.byteLength;
      if (needed > maxBytes) {
        end({ kind: 'too_large' });
        return;
      }
      // Most bodies come in one chunk, which needs no copy.
      if (size === 0 && chunk.byteLength === announced) {
        bytes = chunk;
        size = needed;
        return;
      }
      if (needed > bytes.byteLength) {
        const least = announced ?? Math.max(needed, bytes.byteLength * 2);
        const larger = Buffer.allocUnsafeSlow(Math.min(maxBytes, Math.max(needed, least)));
        bytes.copy(larger, 0, 0, size);
        bytes = larger;
      }
      chunk.copy(bytes, size);
      size = needed;
    };
    const whole = (): void =>
      end(
        announced === undefined || announced === size
          ? { kind: 'body', bytes: bytes.subarray(0, size) }
          : { kind: 'cut' },
      );
    const cut = (): void => end({ kind: 'cut' });
    stream.on('data', take).on('end', whole).on('error', cut).on('close', cut);
    stream.resume();
  });
}

/** Returns the Content-Length of a request; undefined if it has none, because the body is sent in chunks. */
export function announcedBytes(contentLength: string | undefined): number | undefined {
  return contentLength === undefined ? undefined : Number(contentLength);
}
