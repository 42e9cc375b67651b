import { openCgroup } from '../sandboxes/cgroups/group.ts';
import { openEngine } from '../sandboxes/engine/engine.ts';
import { removeContainer } from '../sandboxes/engine/names.ts';
import { removeFolders } from '../sandboxes/folders.ts';
import { endMarked, logSlow, type SlowLog } from '../sandboxes/markers.ts';
import type { SandboxTraces } from '../sandboxes/supervisors.ts';

/**
 * Ends and removes what is left of a sandbox whose supervisor died. Resolves only when every process is proved gone. Never rejects: what
 * could not be removed is logged, and the next start removes it.
 */
export async function removeRemains(
  { id, stateRoot, label, variable, cgroups, container }: SandboxTraces,
  log: SlowLog,
): Promise<void> {
  const onSlow = logSlow(log, { sandbox: id });
  await endMarked({ labels: [label], variable }, onSlow);
  const failed = (error: Error) =>
    log.warn(
      { sandbox: id, error: error.message },
      'a sandbox could not be removed completely; the next start tries again',
    );
  if (container !== undefined) await removeContainer(openEngine(container.engine), container.name).catch(failed);
  if (cgroups !== undefined)
    await openCgroup(cgroups, id)
      .then((group) => group.remove(onSlow))
      .catch(failed);
  await removeFolders(stateRoot, id).catch(failed);
}
