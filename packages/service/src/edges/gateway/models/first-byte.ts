import type { Readable } from 'node:stream';

/**
 * Waits for the first byte, or the regular end, of a body, without reading it. False: the body broke off, or nothing came for
 * `silenceMs`.
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
