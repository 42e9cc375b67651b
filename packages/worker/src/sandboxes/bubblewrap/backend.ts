import type { SandboxLevel } from '@runyard/contract/workers/worker-protocol';
import { type SandboxLimits, sameLimits } from '../limits.ts';
import { openPool } from '../pool.ts';
import type { SandboxBackend, SandboxSpecification } from '../sandbox.ts';
import { refuseSystem, refuseUnsupported } from '../specification.ts';
import type { PooledSandbox, SystemFiles } from '../supervisors.ts';

/** After a sandbox was taken, the backend waits this long before it prepares the next one. */
const refillMs = 150;

/** Makes a sandbox with these limits. If `isWarm` is true, an agent starts in the sandbox at once and waits for a run. */
export type MakeSandbox = (limits: SandboxLimits, isWarm: boolean) => Promise<PooledSandbox>;

export interface BubblewrapBackendOptions {
  /** The limits of this worker. A run with other limits gets a new sandbox. */
  readonly limits: SandboxLimits;
  readonly level: SandboxLevel;
  readonly make: MakeSandbox;
  /** Returns the files of a new Debian. Rejects with a `SandboxError` if this worker cannot make them. Absent: no sandbox has its own Debian. */
  readonly system?: ((specification: SandboxSpecification) => Promise<SystemFiles>) | undefined;
  /** Number of sandboxes in which an agent waits for its run. */
  readonly warm: number;
  readonly log: { warn(fields: object, message: string): void };
}

/**
 * Creates the backend. It always has one prepared sandbox in which no process runs yet, and `warm` sandboxes in which an agent waits
 * for a run. All these sandboxes have the limits of the worker. For a run with other limits, a new sandbox is made.
 */
export function bubblewrapBackend({
  limits,
  level,
  make,
  system,
  warm,
  log,
}: BubblewrapBackendOptions): SandboxBackend {
  const prepared = openPool(() => make(limits, false), { size: 1, refillMs });
  const waiting = openPool(() => make(limits, true), {
    size: warm,
    refillMs,
    onFailure: (reason) =>
      log.warn({ reason }, 'no agent waits for a run at the moment; runs start without a waiting agent'),
  });
  const take = async (specification: SandboxSpecification): Promise<PooledSandbox> => {
    if (!sameLimits(specification.limits, limits)) return await make(specification.limits, false);
    return (isPlain(specification) ? waiting.takeReady() : undefined) ?? (await prepared.take());
  };
  const drain = async (): Promise<void> => {
    await Promise.all([waiting.close(), prepared.close()]);
  };
  return {
    describe: () => level,
    async create(specification, signal) {
      refuseUnsupported(specification);
      if (system === undefined) refuseSystem(specification);
      const files =
        specification.system === undefined ? undefined : await unlessAborted(system?.(specification), signal);
      const sandbox = await take(specification);
      sandbox.assign?.(specification);
      try {
        if (specification.egress !== undefined) await sandbox.openEgress(specification.egress);
        if (files !== undefined) await sandbox.openSystem?.(files);
        signal.throwIfAborted();
        return sandbox;
      } catch (error) {
        await sandbox.dispose();
        throw error;
      }
    },
    drain: () => void drain(),
    waiting: waiting.counts,
    close: drain,
  };
}

/**
 * Returns true if a waiting agent can take the run: the run needs no allowed hosts, no own Debian and no variables, because a waiting agent
 * was started without them.
 */
function isPlain({ egress, system, variables = [] }: SandboxSpecification): boolean {
  return egress === undefined && system === undefined && variables.length === 0;
}

/** Returns the result of the promise. Rejects at once if the signal aborts; the work then continues for the next caller. */
async function unlessAborted<T>(promise: Promise<T> | undefined, signal: AbortSignal): Promise<T | undefined> {
  const aborted = Promise.withResolvers<never>();
  const abort = () => aborted.reject(signal.reason);
  signal.addEventListener('abort', abort, { once: true });
  try {
    return await Promise.race([promise, aborted.promise]);
  } finally {
    signal.removeEventListener('abort', abort);
  }
}
