import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Readable } from 'node:stream';
import type { UpstreamTimeouts } from './upstream.ts';

/** The end of an answer that was forwarded. */
export type PassedOn = 'complete' | 'cut' | 'aborted';

/**
 * Forwards the bytes of `body` to the client as they arrive, never more than its socket accepts, and passes them to `watch`.
 * `complete`: both sides got the end. `cut`: the provider broke off, or sent nothing for `silenceMs`; the connection of the client is
 * closed too, so that it cannot take a part for the whole. `aborted`: the client disconnected. The rest of the answer is then read for
 * up to `hangUpMs` and passed to `watch`, because the provider reports the usage at the end. The headers must have been written.
 * `source` is the answer that `body` comes from.
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
        // Bytes forwarded before the cut still reach the client; the end mark of the body does not.
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
      // A slow client is not a silent provider. `close` reports that it hung up.
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

/** Reads at most `maxBytes` of a body whose connection is not used again; the rest is not read. */
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
    // The error answer was cut. A part of it is still useful.
  } finally {
    clearTimeout(late);
  }
  return Buffer.concat(parts);
}

/**
 * Waits for the first byte, or the regular end, of a body, without reading it. Returns false if the body broke off, or
 * nothing came for `silenceMs`.
 */
export async function hasFirstByte(body: Readable, silenceMs: number): Promise<boolean> {
  const has = await new Promise<boolean>((resolve) => {
    const timer = setTimeout(() => end(false), silenceMs);
    const yes = (): void => end(true);
    const no = (): void => end(false);
    const end = (result: boolean): void => {
      clearTimeout(timer);
      body.off('readable', yes).off('end', yes).off('error', no).off('close', no);
      // An error that comes between this listener and the next one is not lost: the stream is destroyed then.
      body.on('error', () => {});
      resolve(result);
    };
    body.once('readable', yes).once('end', yes).once('error', no).once('close', no);
    if (body.destroyed) no();
  });
  // The stream leaves its paused mode in the next tick after the last `readable` listener.
  await new Promise(setImmediate);
  return has && !body.errored;
}
