import type { SandboxLevel } from '@runyard/contract/worker-protocol';
import { type SandboxLimits, sameLimits } from '../limits.ts';
import { openPool } from '../pool.ts';
import type { SandboxBackend } from '../sandbox.ts';
import { refuseUnsupported } from '../specification.ts';
import type { PooledSandbox } from '../supervisors.ts';

/** Pause before the next sandbox is made ready. */
const refillMs = 150;

/** Creates the backend. A pool keeps one sandbox with the worker's own limits ready. `make` makes a sandbox with these limits. */
export function bubblewrapBackend(
  ownLimits: SandboxLimits,
  level: SandboxLevel,
  make: (limits: SandboxLimits) => Promise<PooledSandbox>,
): SandboxBackend {
  const pool = openPool(() => make(ownLimits), refillMs);
  return {
    describe: () => level,
    async create(specification, signal) {
      refuseUnsupported(specification);
      const { limits } = specification;
      const sandbox = await (sameLimits(limits, ownLimits) ? pool.take() : make(limits));
      sandbox.assign?.(specification);
      try {
        if (specification.egress !== undefined) await sandbox.openEgress(specification.egress);
        signal.throwIfAborted();
        return sandbox;
      } catch (error) {
        await sandbox.dispose();
        throw error;
      }
    },
    close: () => pool.close(),
  };
}
