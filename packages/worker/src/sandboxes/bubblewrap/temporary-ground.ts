import { randomUUID } from 'node:crypto';
import { chmod, mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { type CgroupSearch, removeHierarchy } from '../cgroups/hierarchy.ts';
import { type BubblewrapGround, type GroundRequest, makeGround } from './ground.ts';

export interface TemporaryGround {
  readonly ground: BubblewrapGround;
  readonly cgroups: CgroupSearch;
  /** Removes the folder, users and cgroups. */
  close(): Promise<void>;
}

/**
 * Prepares the parts that sandboxes share, for use without a worker. The parts are in a temporary folder, and users and cgroups differ
 * from those of every worker.
 */
export async function openTemporaryGround(
  request: Pick<GroundRequest, 'program' | 'gvisor' | 'limits' | 'log'>,
): Promise<TemporaryGround> {
  const stateRoot = await mkdtemp(path.join(os.tmpdir(), 'runyard-probe-'));
  const remove = () => rm(stateRoot, { recursive: true, force: true });
  try {
    await chmod(stateRoot, 0o711);
    const owner = path.basename(stateRoot);
    const { ground, cgroups } = await makeGround({ ...request, stateRoot, owner, instanceId: randomUUID() });
    return {
      ground,
      cgroups,
      async close() {
        if (cgroups.ok) await removeHierarchy(cgroups.hierarchy);
        await remove();
      },
    };
  } catch (error) {
    await remove();
    throw error;
  }
}
