import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Readable } from 'node:stream';

/** How an answer that was passed on ended. */
export type PassedOn = 'complete' | 'cut' | 'aborted';

/**
 * Passes the bytes of `body` on to the client piece by piece as they come, never more than its socket takes, and shows them to
 * `watch`. `complete`: both sides saw the end. `cut`: the provider broke off, or was silent for `silenceMs`, and the client's
 * connection is broken off too, so that it cannot take a part for the whole. `aborted`: the client is gone.
 * The headers must have been written. `source` is the answer that `body` comes from.
 */
export function passOn(
  source: IncomingMessage,
  body: Readable,
  client: ServerResponse,
  silenceMs: number,
  watch: (bytes: Uint8Array) => void,
): Promise<PassedOn> {
  return new Promise((resolve) => {
    let ended: PassedOn | undefined;
    let silence: NodeJS.Timeout | undefined;
    const listen = (): void => {
      clearTimeout(silence);
      silence = setTimeout(() => end('cut'), silenceMs);
    };
    const end = (how: PassedOn): void => {
      if (ended !== undefined) return;
      ended = how;
      clearTimeout(silence);
      if (how === 'complete') {
        client.end();
      } else {
        source.destroy();
        body.destroy();
        // What was passed on before the cut still reaches the client; the end mark of the body does not.
        if (how === 'cut') client.socket?.destroySoon();
        else client.destroy();
      }
      resolve(how);
    };
    body.on('data', (bytes: Buffer) => {
      watch(bytes);
      if (client.write(bytes)) return listen();
      // A slow client is not a silent provider; that it is gone is told by `close`.
      clearTimeout(silence);
      body.pause();
    });
    client.on('drain', () => {
      if (ended !== undefined) return;
      listen();
      body.resume();
    });
    body.once('end', () => end('complete'));
    body.once('error', () => end('cut'));
    body.once('close', () => end('cut'));
    client.once('close', () => end('aborted'));
    listen();
    if (client.destroyed) end('aborted');
  });
}

/** Reads at most `maxBytes` of a body whose connection may be thrown away afterwards; the rest is left. */
export async function readUpTo(body: Readable, maxBytes: number): Promise<Buffer> {
  const parts: Buffer[] = [];
  let size = 0;
  try {
    for await (const part of body as AsyncIterable<Buffer>) {
      parts.push(part.subarray(0, maxBytes - size));
      size += part.byteLength;
      if (size >= maxBytes) break;
    }
  } catch {
    // Cut in the middle of an error answer: what came is better than nothing.
  }
  return Buffer.concat(parts);
}
