import type { IncomingMessage } from 'node:http';
import { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { http } from '@runyard/system/node-http';
import type { CacheAccess } from '../cache/answer.ts';
import type { CachedObject, WriteOutcome } from '../cache/cache.ts';

/**
 * Opens the cache through the socket of the worker, because only one process may use the files of the cache. While no worker runs, reads
 * and writes reject.
 */
export function remoteCache(socketPath: string): CacheAccess['cache'] {
  const send = (method: string, name: string, body?: AsyncIterable<Uint8Array>): Promise<IncomingMessage> =>
    new Promise((resolve, reject) => {
      const sent = http.request({ socketPath, method, path: `/${name}`, agent: false });
      sent.once('response', resolve).once('error', reject);
      if (body === undefined) return void sent.end();
      const source = Readable.from(body);
      source.once('error', (error) => sent.destroy(error));
      source.pipe(sent);
    });
  return {
    async read(name): Promise<CachedObject | undefined> {
      const answer = await send('GET', name);
      if (answer.statusCode !== 200) {
        answer.resume();
        if (answer.statusCode === 404) return undefined;
        throw new Error(`the worker's cache answered ${answer.statusCode}`);
      }
      return {
        sha256: String(answer.headers['x-content-sha256']),
        bytes: Number(answer.headers['content-length']),
        content: () => answer,
        close: async () => void answer.destroy(),
      };
    },
    async write(name, source): Promise<WriteOutcome> {
      const answer = await send('PUT', name, source);
      answer.resume();
      if (answer.statusCode === 204) return 'kept';
      if (answer.statusCode === 413) return 'too_large';
      throw new Error(`the worker's cache answered ${answer.statusCode}`);
    },
    async workspace(action, name, sandbox) {
      const answer = await send('POST', `${name}/${action}/${sandbox}`);
      return { status: answer.statusCode ?? 503, body: await text(answer) };
    },
  };
}
