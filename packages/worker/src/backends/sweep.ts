import type { Logger } from 'pino';
import { findWorkerCgroups } from '../sandboxes/bubblewrap/ground.ts';
import { openCgroup } from '../sandboxes/cgroups/group.ts';
import { listGroups } from '../sandboxes/cgroups/hierarchy.ts';
import { removeLeftovers } from '../sandboxes/folders.ts';
import { endMarked, logSlow, ownerLabel, ownerVariable } from '../sandboxes/markers.ts';

/**
 * Ends and removes what earlier processes of this data folder left: sandboxes (recognised by the label of their first processes and
 * by the marker in their environment), cgroups, workspaces. The caller holds the lock of the data folder, so all of it is
 * abandoned. Resolves only when every process is proved gone: a cgroup that the kernel removes is empty, and no process has a
 * mark of this folder. The worker may say so in its hello.
 */
export async function sweepLeftovers(stateRoot: string, owner: string, log: Logger): Promise<void> {
  const onSlow = logSlow(log, { owner });
  await endMarked({ label: ownerLabel(owner), variable: ownerVariable(owner) }, onSlow);
  const cgroups = await findWorkerCgroups(owner);
  const groups = cgroups.ok ? await listGroups(cgroups.hierarchy) : [];
  for (const name of groups) {
    const group = cgroups.ok ? await openCgroup(cgroups.hierarchy, name) : undefined;
    await group?.remove(onSlow).catch((error: Error) => {
      log.warn({ error: error.message }, 'an empty leftover cgroup could not be removed');
    });
  }
  const folders = await removeLeftovers(stateRoot).catch((error: Error) => {
    log.warn({ error: error.message }, 'leftover workspaces could not be removed');
    return [];
  });
  if (folders.length + groups.length > 0) {
    log.info({ workspaces: folders.length, cgroups: groups.length }, 'removed what an earlier worker left behind');
  }
}
