import type { IncomingMessage, ServerResponse } from 'node:http';
import type { OwnAnswers } from './relay.ts';

/** Path at which the agent asks the worker, instead of the service, about the memory of its own sandbox. */
const memoryPath = '/sandbox/memory';

/** Memory limit of a sandbox and number of its killed processes, read from its cgroup. */
export interface SandboxMemory {
  readonly oom_kills: number;
  readonly memory_mb: number;
}

/** Reports how much memory a sandbox may use, and how many of its processes the kernel killed because of this limit. */
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
