import { readFileSync } from 'node:fs';
import { rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { loadClient } from '@runyard/system/load-client';
import { type AdoptRequest, type BackendKind, type SweepRequest, unavailable } from '../backend-kind.ts';
import type { ClusterAddress } from './cluster.ts';
import { openSecret, ownerOf } from './record.ts';

/**
 * Path of the file that stores the address of the cluster with the Jobs of this data folder. The file is needed because the settings of a
 * later worker may name another cluster.
 */
const clusterFile = (stateRoot: string): string => path.join(stateRoot, 'kubernetes.json');

const load = async () => await loadClient('RUNYARD_SANDBOX=kubernetes', () => import('./open.ts'));

/**
 * The backend whose sandboxes are pods of a cluster. The environment of a run names the image of the pod. Each function loads the client
 * library only when the function is called.
 */
export const kubernetes: BackendKind = {
  async probe(limits, settings) {
    try {
      const { probeCluster } = await load();
      return await probeCluster(limits, settings);
    } catch (error) {
      return unavailable('kubernetes', (error as Error).message);
    }
  },
  async open(request) {
    const { openKubernetes } = await load();
    const { opened, address } = await openKubernetes(request);
    await writeFile(clusterFile(request.state.folder), JSON.stringify(address), { mode: 0o600 });
    return opened;
  },
  async adopt(request: AdoptRequest) {
    if (knownCluster(request.state.folder) === undefined) return [];
    const { adoptSandboxes } = await load();
    return await adoptSandboxes(request);
  },
  sweep,
};

function knownCluster(stateRoot: string): ClusterAddress | undefined {
  try {
    return JSON.parse(readFileSync(clusterFile(stateRoot), 'utf8'));
  } catch {
    return undefined;
  }
}

/** Deletes the Jobs of this data folder, except those of adopted sandboxes. */
async function sweep({ stateRoot, kept, log }: SweepRequest): Promise<number> {
  const address = knownCluster(stateRoot);
  if (address === undefined) return 0;
  try {
    const { deleteLeft } = await load();
    const deleted = await deleteLeft(address, ownerOf(openSecret(stateRoot)), kept);
    if (kept.size === 0) await rm(clusterFile(stateRoot), { force: true });
    return deleted;
  } catch (error) {
    log.warn({ error: (error as Error).message }, 'leftover Jobs could not be deleted; the next start tries again');
    return 0;
  }
}
