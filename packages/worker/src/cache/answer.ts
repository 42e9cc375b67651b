import { timingSafeEqual } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { pipeline } from 'node:stream/promises';
import { workerCachePath } from '@runyard/contract/workers/worker-cache';
import type { OwnAnswers } from '../relay/relay.ts';
import type { Cache } from './cache.ts';

export interface CacheAccess {
  readonly cache: Pick<Cache, 'read' | 'write'>;
  /** Path that the service's URL has before `/api/v1`. Usually empty. */
  readonly basePath: string;
  /**
   * Returns the run token of the sandbox's run, or an empty text before the agent starts. In the sandbox, only the agent has the run
   * token.
   */
  runToken(): string;
}

/**
 * Maximum number of objects that a sandbox may store. More are not needed: a run stores only its workspace, and a mirror of each of its
 * repositories.
 */
const mostWrites = 24;
/** If a sandbox sends nothing for this time, its connection is cut. */
const silenceMs = 60_000;

/**
 * Answers GET and PUT requests for objects in the worker's cache, `/api/v1/worker-cache/{name}`. Only the agent can send such requests,
 * because the requests need the run token, which commands of the run do not have. The service chooses the names. Names are secret, because
 * everybody who knows the name of an object can read the object. Each team has different names.
 */
export function cacheAnswers(access: CacheAccess): OwnAnswers {
  const prefix = `${access.basePath}${workerCachePath}/`;
  let writes = 0;
  let writing = false;

  const put = async (name: string, request: IncomingMessage): Promise<number> => {
    if (writing || writes >= mostWrites) return 429;
    writes += 1;
    writing = true;
    request.setTimeout(silenceMs, () => request.destroy());
    try {
      return (await access.cache.write(name, request)) === 'kept' ? 204 : 413;
    } finally {
      writing = false;
    }
  };

  const get = async (name: string, response: ServerResponse): Promise<void> => {
    const found = await access.cache.read(name);
    if (found === undefined) return end(response, 404);
    response.setTimeout(silenceMs, () => response.destroy());
    response.writeHead(200, {
      'content-type': 'application/octet-stream',
      'content-length': found.bytes,
      'x-content-sha256': found.sha256,
    });
    await pipeline(found.content(), response).finally(() => found.close().catch(() => {}));
  };

  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const name = (request.url ?? '').slice(prefix.length);
    if (!isBearer(request, access.runToken())) return end(response, 401);
    if (!/^[A-Za-z0-9_-]{43}$/.test(name)) return end(response, 404);
    if (request.method === 'GET') return await get(name, response);
    if (request.method === 'PUT') return end(response, await put(name, request));
    return end(response, 405);
  };

  return (request, response) => {
    if (!request.url?.startsWith(prefix)) return false;
    answer(request, response).catch(() => {
      if (response.headersSent) response.destroy();
      else end(response, 503);
    });
    return true;
  };
}

/**
 * Ends the answer. After an error, the connection is closed too, because the server would read the unread rest of the request as the next
 * request.
 */
function end(response: ServerResponse, status: number): void {
  response.writeHead(status, { 'content-length': 0, ...(status < 300 ? {} : { connection: 'close' }) }).end();
}

function isBearer(request: IncomingMessage, token: string): boolean {
  const given = Buffer.from(request.headers.authorization ?? '');
  const wanted = Buffer.from(`Bearer ${token}`);
  return token !== '' && given.length === wanted.length && timingSafeEqual(given, wanted);
}
