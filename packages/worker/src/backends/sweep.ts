import type { Logger } from 'pino';
import { removeLeftovers } from '../sandboxes/folders.ts';
import { endMarked, logSlow, ownerLabel, ownerVariable } from '../sandboxes/markers.ts';
import { backends } from './backends.ts';

/**
 * Ends and removes what earlier processes of this data folder left: the processes of sandboxes, what each backend sweeps, and
 * workspaces. The caller holds the lock of the data folder, so all of it is abandoned. Resolves only when every process is
 * proved gone, so that the worker may say so in its hello: no process has a mark of this folder, and the kernel removes a cgroup
 * only when it is empty.
 */
export async function sweepLeftovers(stateRoot: string, owner: string, log: Logger): Promise<void> {
  const onSlow = logSlow(log, { owner });
  await endMarked({ label: ownerLabel(owner), variable: ownerVariable(owner) }, onSlow);
  let sandboxes = 0;
  for (const backend of new Set(Object.values(backends))) sandboxes += await backend.sweep({ owner, onSlow, log });
  const workspaces = await removeLeftovers(stateRoot).catch((error: Error) => {
    log.warn({ error: error.message }, 'leftover workspaces could not be removed');
    return [];
  });
  if (workspaces.length + sandboxes > 0) {
    log.info({ workspaces: workspaces.length, sandboxes }, 'removed what an earlier worker left behind');
  }
}
