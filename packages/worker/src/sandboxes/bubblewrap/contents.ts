import { cacheAnswers } from '../../cache/answer.ts';
import type { Cache } from '../../cache/cache.ts';
import { memoryAnswers } from '../../relay/memory-answers.ts';
import { openRelay, type Upstream } from '../../relay/relay.ts';
import type { SandboxContents } from './prepare.ts';

/** Returns the contents of an agent's sandbox: the runtime, and a relay to the service. */
export function agentContents(
  runtime: string,
  upstream: Upstream,
  cache?: Pick<Cache, 'read' | 'write'>,
): SandboxContents {
  return {
    runtime,
    relay: (socketPath, uid, { runToken, memory }) => {
      const { basePath } = upstream;
      const own = [memoryAnswers(basePath, memory), ...(cache ? [cacheAnswers({ cache, basePath, runToken })] : [])];
      return openRelay(socketPath, upstream, uid, own);
    },
  };
}
