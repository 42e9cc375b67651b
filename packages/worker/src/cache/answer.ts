import type { IncomingMessage, ServerResponse } from 'node:http';
import { pipeline } from 'node:stream/promises';
import { workerCachePath } from '@runyard/contract/workers/worker-cache';
import type { OwnAnswers } from '../relay/relay.ts';
import { hasRunToken } from '../relay/run-token.ts';
import type { Cache } from './cache.ts';

/** Requests about kept workspaces. A sandbox can use one kept workspace, or keep one, and each only once. */
const workspaceActions = ['find', 'use', 'keep'] as const;
type WorkspaceAction = (typeof workspaceActions)[number];

export interface CacheAccess {
  readonly cache: Pick<Cache, 'read' | 'write'> & {
    /** Sends the request to the `KeptWorkspaces`, and returns the answer as it is. */
    workspace(
      action: WorkspaceAction,
      name: string,
      sandbox: string,
    ): Promise<{ readonly status: number; readonly body: string }>;
  };
  /** Id of the sandbox. Absent if its workspace and home cannot be copied; then the agent stores an archive of them. */
  readonly sandbox?: string | undefined;
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
 * Answers GET and PUT requests for objects in the worker's cache, `/api/v1/worker-cache/{name}`, and POST requests for kept workspaces,
 * `/api/v1/worker-cache/{name}/{action}`. Only the agent can send such requests, because the requests need the run token, which commands of
 * the run do not have. The service chooses the names. Names are secret, because
 * everybody who knows the name of an object can read the object. Each team has different names.
 */
export function cacheAnswers(access: CacheAccess): OwnAnswers {
  const prefix = `${access.basePath}${workerCachePath}/`;
  let writes = 0;
  let writing = false;
  /** Requests that are refused from now on, so that a program with a stolen run token cannot repeat them. */
  const done = new Set<WorkspaceAction>();

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

  const workspace = async (action: WorkspaceAction, name: string, response: ServerResponse): Promise<void> => {
    const { sandbox } = access;
    if (sandbox === undefined) return end(response, 501);
    if (done.has(action) || done.has('keep')) return end(response, 409);
    if (action !== 'find') done.add(action);
    const { status, body } = await access.cache.workspace(action, name, sandbox);
    if (action === 'use' && status === 200) done.add('keep');
    response.writeHead(status, { 'content-type': 'application/json' }).end(body);
  };

  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const [name = '', action] = (request.url ?? '').slice(prefix.length).split('/');
    if (!hasRunToken(request, access.runToken())) return end(response, 401);
    if (!/^[A-Za-z0-9_-]{43}$/.test(name)) return end(response, 404);
    const known = workspaceActions.find((each) => each === action);
    if (action !== undefined && (known === undefined || request.method !== 'POST')) return end(response, 404);
    if (known !== undefined) return await workspace(known, name, response);
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
