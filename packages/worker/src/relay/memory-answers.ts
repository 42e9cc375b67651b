import type { IncomingMessage, ServerResponse } from 'node:http';
import type { OwnAnswers } from './relay.ts';

/** The worker itself answers requests for this path, with which the agent asks about the memory of its own sandbox. */
const memoryPath = '/sandbox/memory';

/**
 * From the cgroup of a sandbox: `memory_mb` is the memory limit. `oom_kills` is the number of processes that the kernel killed because of
 * this limit.
 */
export interface SandboxMemory {
  readonly oom_kills: number;
  readonly memory_mb: number;
}

/** Makes the function that answers GET requests for `memoryPath`. */
export const memoryAnswers =
  (basePath: string, memory: () => Promise<SandboxMemory>): OwnAnswers =>
  (request: IncomingMessage, response: ServerResponse) => {
    if (request.method !== 'GET' || request.url !== `${basePath}${memoryPath}`) return false;
    memory().then(
      (answer) => response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(answer)),
      () => response.writeHead(503, { 'retry-after': '1' }).end(),
    );
    return true;
  };
