import { readdir, rm } from 'node:fs/promises';
import path from 'node:path';
import type { Logger } from 'pino';
import { removeLeftovers } from '../sandboxes/folders.ts';
import { endMarked, logSlow, ownerLabel, ownerVariable, supervisorLabel } from '../sandboxes/markers.ts';
import type { StateRoot } from '../state/state-root.ts';
import { supervisorsFolder } from '../supervisor-client/files.ts';
import { readEnd } from '../supervisor-client/records.ts';
import { backends } from './backends.ts';

/**
 * Ends and removes the remains of earlier processes of this data folder: processes of sandboxes, their supervisors, workspaces, and the
 * objects of each backend, such as containers. Does not touch the sandboxes with the ids in `kept`, which the caller has adopted. The
 * caller holds the lock of the data folder, so no other process uses these remains. Resolves only when it is certain that every process has
 * ended: no process has an argument or a variable that marks processes of this folder, and the kernel removes a cgroup only when the cgroup
 * is empty. So the worker may report in its hello that these sandboxes have ended. Keeps the records of sandbox ends that the worker has
 * not reported yet. Returns how many workspaces and objects of backends were removed.
 */
export async function sweepLeftovers(
  { folder, owner }: StateRoot,
  kept: ReadonlySet<string>,
  log: Logger,
): Promise<number> {
  const onSlow = logSlow(log, { owner });
  const labels = [ownerLabel(owner), supervisorLabel(owner)];
  const sweepBackends = async (): Promise<number> => {
    let removed = 0;
    for (const backend of new Set(Object.values(backends)))
      removed += await backend.sweep({ owner, stateRoot: folder, kept, onSlow, log });
    return removed;
  };
  // Removes cgroups and ends processes at the same time. Reason: `endMarked` waits until all processes have ended, but a frozen process
  // cannot end. `sweepBackends` thaws frozen processes before it removes their cgroup.
  const [sandboxes] = await Promise.all([
    sweepBackends(),
    endMarked({ labels, variable: ownerVariable(owner), kept }, onSlow),
  ]);
  const workspaces = await removeLeftovers(folder, kept).catch((error: Error) => {
    log.warn({ error: error.message }, 'leftover workspaces could not be removed');
    return [];
  });
  const supervisors = supervisorsFolder(folder);
  for (const name of await readdir(supervisors).catch(() => [])) {
    const place = path.join(supervisors, name);
    if (!kept.has(name) && readEnd(place) === undefined) await rm(place, { recursive: true, force: true });
  }
  if (workspaces.length + sandboxes > 0) {
    log.info({ workspaces: workspaces.length, sandboxes }, 'removed the remains of an earlier worker');
  }
  return workspaces.length + sandboxes;
}
