import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Readable } from 'node:stream';
import type { UpstreamTimeouts } from './upstream.ts';

/** How the forwarding of an answer ended. */
export type PassedOn = 'complete' | 'cut' | 'aborted';

/**
 * Forwards the bytes of `body` to the client as they arrive, at the speed of the client's socket, and passes the bytes to `watch`. The
 * caller has already sent the headers. `source` is the response that `body` is made from. Result `complete`: the client got the whole body.
 * `cut`: the provider closed the connection early, or sent nothing for `silenceMs`; the client's connection is closed too, so that the
 * client sees that the answer is incomplete. `aborted`: the client disconnected. The remaining answer is then read for up to `hangUpMs` and
 * passed to `watch`, because the provider reports the usage at the end.
 */
export function passOn(
  source: IncomingMessage,
  body: Readable,
  client: ServerResponse,
  { silenceMs, hangUpMs }: Pick<UpstreamTimeouts, 'silenceMs' | 'hangUpMs'>,
  watch: (bytes: Uint8Array) => void,
): Promise<PassedOn> {
  return new Promise((resolve) => {
    let ended: PassedOn | undefined;
    let silence: NodeJS.Timeout | undefined;
    let patience: NodeJS.Timeout | undefined;
    const listen = (): void => {
      clearTimeout(silence);
      silence = setTimeout(() => end('cut'), silenceMs);
    };
    const end = (how: Exclude<PassedOn, 'aborted'>): void => {
      if (ended !== undefined) return;
      ended = patience === undefined ? how : 'aborted';
      clearTimeout(silence);
      clearTimeout(patience);
      if (ended === 'complete') {
        client.end();
      } else {
        source.destroy();
        body.destroy();
        // `destroySoon` still sends the bytes that were forwarded before the cut, but not the end mark of the body.
        if (ended === 'cut') client.socket?.destroySoon();
      }
      resolve(ended);
    };
    const hangUp = (): void => {
      if (ended !== undefined) return;
      patience = setTimeout(() => end('cut'), hangUpMs);
      listen();
      body.resume();
    };
    body.on('data', (bytes: Buffer) => {
      watch(bytes);
      if (patience !== undefined || client.write(bytes)) return listen();
      // While a slow client makes the stream wait, the provider does not count as silent. The `close` event reports that the client hung up.
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
    client.once('close', hangUp);
    listen();
    if (client.destroyed) hangUp();
  });
}

interface ReadBounds {
  readonly maxBytes: number;
  /** Milliseconds for the whole body. */
  readonly maxMs: number;
}

/** Reads at most `maxBytes` of a body and leaves the rest; the connection is not used again. */
export async function readUpTo(body: Readable, { maxBytes, maxMs }: ReadBounds): Promise<Buffer> {
  const late = setTimeout(() => body.destroy(new Error('the answer does not end')), maxMs);
  const parts: Buffer[] = [];
  let size = 0;
  try {
    for await (const part of body as AsyncIterable<Buffer>) {
      parts.push(part.subarray(0, maxBytes - size));
      size += part.byteLength;
      if (size >= maxBytes) break;
    }
  } catch {
    // The error answer was cut. The part that arrived is still useful.
  } finally {
    clearTimeout(late);
  }
  return Buffer.concat(parts);
}

/**
 * Waits for the first byte or the regular end of a body, without consuming it. Returns false if the connection broke, or nothing arrived
 * for `silenceMs`.
 */
export async function hasFirstByte(body: Readable, silenceMs: number): Promise<boolean> {
  const has = await new Promise<boolean>((resolve) => {
    const timer = setTimeout(() => end(false), silenceMs);
    const yes = (): void => end(true);
    const no = (): void => end(false);
    const end = (result: boolean): void => {
      clearTimeout(timer);
      body.off('readable', yes).off('end', yes).off('error', no).off('close', no);
      // Ignore an error that comes before the next reader listens. The reader still notices it, because an error also destroys the stream.
      body.on('error', () => {});
      resolve(result);
    };
    body.once('readable', yes).once('end', yes).once('error', no).once('close', no);
    if (body.destroyed) no();
  });
  // Wait for the next tick, because only then the stream notices that its last `readable` listener was removed, and leaves the paused mode.
  await new Promise(setImmediate);
  return has && !body.errored;
}
