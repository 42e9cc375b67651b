import type { Settings } from '@runyard/contract/settings/settings';
import type { AdoptableSandbox, AdoptRequest, BackendKind, OpenRequest } from '../sandboxes/backend-kind.ts';
import { bubblewrap, gvisor } from '../sandboxes/bubblewrap/kind.ts';
import { docker } from '../sandboxes/docker/kind.ts';
import { kubernetes } from '../sandboxes/kubernetes/kind.ts';
import { none } from '../sandboxes/none/kind.ts';
import type { SandboxBackend } from '../sandboxes/sandbox.ts';

/** The backends. The keys are the values that the setting `RUNYARD_SANDBOX` accepts. */
export const backends: Readonly<Record<Settings['RUNYARD_SANDBOX'], BackendKind>> = {
  auto: bubblewrap,
  bubblewrap,
  gvisor,
  docker,
  kubernetes,
  none,
};

/** Opens the backend that `RUNYARD_SANDBOX` names. Rejects with the reason and the next step if the backend does not work here. */
export const openBackend = (kind: Settings['RUNYARD_SANDBOX'], request: OpenRequest): Promise<SandboxBackend> =>
  backends[kind].open(request);

/**
 * Returns the sandboxes that earlier workers of the data folder left in this backend. Leaves out the sandboxes that have a supervisor
 * process. Rejects if the search fails.
 */
export async function adoptLeft(
  kind: Settings['RUNYARD_SANDBOX'],
  request: AdoptRequest,
): Promise<readonly AdoptableSandbox[]> {
  return (await backends[kind].adopt?.(request)) ?? [];
}
