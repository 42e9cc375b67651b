import type { Logger } from 'pino';
import { findWorkerCgroups, ownerLabel } from '../sandboxes/bubblewrap/ground.ts';
import { openCgroup } from '../sandboxes/cgroups/group.ts';
import { listGroups } from '../sandboxes/cgroups/hierarchy.ts';
import { removeLeftovers } from '../sandboxes/folders.ts';
import { ownerVariable } from '../sandboxes/none/backend.ts';
import { findProcesses, killUntilGone } from '../state/processes.ts';

/**
 * Ends and removes what earlier processes of this data folder left: sandboxes (recognised by the label of their process, which
 * nobody inside can change), unprotected agents (by the marker in their environment), cgroups, workspaces. The caller holds the
 * lock of the data folder, so all of it is abandoned. False: something could not be ended.
 */
export async function sweepLeftovers(stateRoot: string, owner: string, log: Logger): Promise<boolean> {
  const stray = [
    ...(await killUntilGone(() => findProcesses('cmdline', ownerLabel(owner)))),
    ...(await killUntilGone(() => findProcesses('environ', ownerVariable(owner)))),
  ];
  const cgroups = await findWorkerCgroups(owner);
  const groups = cgroups.ok ? await listGroups(cgroups.hierarchy) : [];
  let clean = stray.length === 0;
  for (const name of groups) {
    const group = cgroups.ok ? await openCgroup(cgroups.hierarchy, name) : undefined;
    if ((await group?.remove()) === false) clean = false;
  }
  const folders = await removeLeftovers(stateRoot).catch((error: Error) => {
    log.warn({ error: error.message }, 'leftover workspaces could not be removed');
    return [];
  });
  if (folders.length + groups.length > 0 || !clean) {
    log.info(
      { workspaces: folders.length, cgroups: groups.length, unkillable: stray.length },
      'removed what an earlier worker left behind',
    );
  }
  return clean;
}
