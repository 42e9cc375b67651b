import { rm } from 'node:fs/promises';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { pipeline } from 'node:stream/promises';
import { answerInTurn } from '@runyard/system/answer-in-turn';
import { http } from '@runyard/system/node-http';
import type { Cache } from './cache.ts';
import type { KeptWorkspaces } from './kept-workspaces.ts';

/** Enough for the relays of more than a hundred sandboxes, each of which reads a few files at the same time. */
const mostConnections = 512;

export interface WorkerStore {
  readonly cache: Cache;
  readonly workspaces: KeptWorkspaces;
}

/**
 * Serves the cache on a socket to the supervisor processes of this worker's sandboxes. The supervisors check the requests of agents before
 * they forward the requests. Only the worker's user can enter the folder of the socket.
 */
export async function serveCache(
  store: WorkerStore,
  socketPath: string,
  log: { warn(fields: object, message: string): void },
): Promise<{ close(): void }> {
  await rm(socketPath, { force: true });
  const server = http.createServer((request, response) => {
    answer(store, request, response).catch((error: Error) => {
      log.warn({ error: error.message }, 'the cache could not store or read an object');
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

async function answer(
  { cache, workspaces }: WorkerStore,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const [name = '', action, sandbox = ''] = (request.url ?? '').slice(1).split('/');
  if (action !== undefined) {
    const { status, body } = await answerAboutWorkspace(workspaces, name, action, sandbox);
    response.writeHead(status, { connection: 'close' }).end(JSON.stringify(body));
    return;
  }
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

async function answerAboutWorkspace(
  workspaces: KeptWorkspaces,
  name: string,
  action: string,
  sandbox: string,
): Promise<{ status: number; body: object }> {
  switch (action) {
    case 'find': {
      const found = await workspaces.find(name);
      return found === undefined ? { status: 404, body: {} } : { status: 200, body: found };
    }
    case 'use':
      return { status: (await workspaces.use(name, sandbox)) ? 200 : 404, body: {} };
    case 'keep': {
      const { type, ...body } = await workspaces.keep(name, sandbox);
      return { status: { kept: 200, too_large: 413, in_use: 409 }[type], body };
    }
    default:
      return { status: 405, body: {} };
  }
}
