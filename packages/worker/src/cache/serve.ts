import { rm } from 'node:fs/promises';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { pipeline } from 'node:stream/promises';
import { answerInTurn } from '@runyard/system/answer-in-turn';
import { http } from '@runyard/system/node-http';
import type { Cache } from './cache.ts';

/** Enough for the relays of more than a hundred sandboxes, each of which reads a few files at the same time. */
const mostConnections = 512;

/**
 * Serves the cache on a socket to the supervisor processes of this worker's sandboxes. The supervisors check the requests of agents before
 * they forward the requests. Only the worker's user can enter the folder of the socket.
 */
export async function serveCache(cache: Cache, socketPath: string): Promise<{ close(): void }> {
  await rm(socketPath, { force: true });
  const server = http.createServer((request, response) => {
    answer(cache, request, response).catch(() => {
      if (response.headersSent) response.destroy();
      else response.writeHead(503, { connection: 'close' }).end();
    });
  });
  answerInTurn(server);
  server.maxConnections = mostConnections;
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(socketPath, resolve);
  });
  server.unref();
  return {
    close() {
      server.close();
      server.closeAllConnections();
    },
  };
}

async function answer(cache: Cache, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const name = (request.url ?? '').slice(1);
  if (request.method === 'PUT') {
    const outcome = await cache.write(name, request);
    response.writeHead(outcome === 'kept' ? 204 : 413, { connection: 'close' }).end();
    return;
  }
  const found = await cache.read(name);
  if (found === undefined) return void response.writeHead(404).end();
  response.writeHead(200, { 'content-length': found.bytes, 'x-content-sha256': found.sha256 });
  await pipeline(found.content(), response).finally(() => found.close().catch(() => {}));
}
