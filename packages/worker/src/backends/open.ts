import { constants } from 'node:fs';
import { access } from 'node:fs/promises';
import path from 'node:path';
import type { Settings } from '@runyard/contract/settings/settings';
import type { AdoptableSandbox, AdoptRequest, OpenRequest } from '../sandboxes/backend-kind.ts';
import type { SandboxBackend } from '../sandboxes/sandbox.ts';
import { backends } from './backends.ts';

/** Opens the backend that `RUNYARD_SANDBOX` names. Rejects with the reason and the next step if the backend does not work here. */
export async function openBackend(kind: Settings['RUNYARD_SANDBOX'], request: OpenRequest): Promise<SandboxBackend> {
  await access(request.agentEntry, constants.R_OK).catch(() => {
    throw new Error(
      `the agent program ${path.relative(process.cwd(), request.agentEntry)} is missing: the checkout is incomplete`,
    );
  });
  return backends[kind].open(request);
}

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
