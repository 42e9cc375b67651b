import type { RelayThread } from '../../relay-thread/relay-thread.ts';
import type { SandboxContents } from './raw-sandbox.ts';

/** The addresses that the relay of an agent reaches. */
export interface RelayTargets {
  /** URL of the service without `/api/v1`. */
  readonly serviceRoot: string;
  /** Socket of the worker's cache. If it is absent, agents store nothing for later runs. */
  readonly cacheSocket?: string | undefined;
}

/** Returns the contents of an agent's sandbox: the runtime, a relay to the service, and a proxy. */
export const agentContents = (
  runtime: string,
  relays: RelayThread,
  { serviceRoot, cacheSocket }: RelayTargets,
): SandboxContents => ({
  runtime,
  relay: (socketPath, uid, memory, sandbox, service) =>
    relays.openRelay({ socketPath, uid, serviceRoot, cacheSocket, sandbox }, memory, service),
  proxy: (order, report) => relays.openProxy(order, report),
});
