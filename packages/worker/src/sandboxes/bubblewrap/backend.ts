import type { SandboxLevel } from '@runyard/contract/worker-protocol';
import { cacheAnswers } from '../../cache/answer.ts';
import type { Cache } from '../../cache/cache.ts';
import { memoryAnswers } from '../../relay/memory-answers.ts';
import { openRelay, type Upstream } from '../../relay/relay.ts';
import { sameLimits } from '../limits.ts';
import { openPool } from '../pool.ts';
import type { SandboxBackend } from '../sandbox.ts';
import { refuseUnsupported } from '../specification.ts';
import type { BubblewrapGround } from './ground.ts';
import { prepareSandbox, type SandboxContents } from './prepare.ts';

/** Pause before the next sandbox is made ready. */
const refillMs = 150;

/** Creates the backend. A pool keeps one sandbox with the worker's own limits ready. */
export function bubblewrapBackend(
  ground: BubblewrapGround,
  level: SandboxLevel,
  runtime: string,
  upstream: Upstream,
  cache?: Cache,
): SandboxBackend {
  const contents: SandboxContents = {
    runtime,
    relay: (socketPath, uid, { runToken, memory }) => {
      const { basePath } = upstream;
      const own = [memoryAnswers(basePath, memory), ...(cache ? [cacheAnswers({ cache, basePath, runToken })] : [])];
      return openRelay(socketPath, upstream, uid, own);
    },
  };
  const pool = openPool(() => prepareSandbox(ground, contents), refillMs);
  return {
    describe: () => level,
    async create(specification, signal) {
      refuseUnsupported(specification);
      const { limits } = specification;
      const sandbox = await (sameLimits(limits, ground.limits)
        ? pool.take()
        : prepareSandbox({ ...ground, limits }, contents));
      try {
        if (specification.egress !== undefined) await sandbox.openEgress(specification.egress);
        signal.throwIfAborted();
        return sandbox;
      } catch (error) {
        await sandbox.dispose();
        throw error;
      }
    },
    async close() {
      await pool.close();
      ground.identities?.close();
    },
  };
}
