import { constants } from 'node:fs';
import { access, mkdir, readFile } from 'node:fs/promises';
import path from 'node:path';
import { probeImages } from '../../state/disk-image.ts';
import { type CgroupSearch, findCgroups } from '../cgroups/hierarchy.ts';
import { ownerLabel, ownerVariable } from '../markers.ts';
import type { SandboxLimits } from '../sandbox.ts';
import type { BubblewrapGround } from './backend.ts';
import { sharedFilesystem, writeEtc } from './filesystem.ts';
import { claimIdentities } from './identities.ts';

/** Fixed places, not PATH: what is found here is trusted with everything. */
const places = ['/usr/bin/bwrap', '/usr/local/bin/bwrap', '/bin/bwrap'];

const mostFiles = 65_536;

/** Path of bwrap, or `undefined` where it is not installed. */
export async function findBubblewrap(): Promise<string | undefined> {
  for (const place of places) {
    const found = await access(place, constants.X_OK).then(
      () => true,
      () => false,
    );
    if (found) return place;
  }
  return undefined;
}

/** Hard limit on open files of this process: a sandbox cannot have more. */
async function nofileLimit(): Promise<number> {
  const text = await readFile('/proc/self/limits', 'utf8').catch(() => '');
  const hard = /^Max open files\s+\S+\s+(\d+|unlimited)/m.exec(text)?.[1];
  return hard === undefined || hard === 'unlimited' ? mostFiles : Math.min(mostFiles, Number(hard));
}

export interface GroundRequest {
  readonly program: string;
  readonly stateRoot: string;
  /** From `chooseStateRoot`; labels cgroups and processes. */
  readonly owner: string;
  readonly instanceId: string;
  readonly limits: SandboxLimits;
  readonly log: BubblewrapGround['log'];
}

/** Cgroups of a worker; each sandbox has a group in them. */
export async function findWorkerCgroups(owner: string): Promise<CgroupSearch> {
  const membership = await readFile('/proc/self/cgroup', 'utf8').catch(() => '');
  const mounts = await readFile('/proc/self/mountinfo', 'utf8').catch(() => '');
  return findCgroups(`runyard-${owner}`, { membership, mounts });
}

/** Gathers what all sandboxes of this worker share. `cgroups` says why there are no hard limits where there are none. */
export async function makeGround(request: GroundRequest): Promise<{ ground: BubblewrapGround; cgroups: CgroupSearch }> {
  await mkdir(path.join(request.stateRoot, 's'), { recursive: true, mode: 0o711 });
  const [etc, cgroups, nofile, disks] = await Promise.all([
    writeEtc(request.stateRoot),
    findWorkerCgroups(request.owner),
    nofileLimit(),
    probeImages(request.stateRoot),
  ]);
  const identities = process.getuid?.() === 0 ? await claimIdentities() : undefined;
  const ground: BubblewrapGround = {
    program: request.program,
    stateRoot: request.stateRoot,
    labelPrefix: `${ownerLabel(request.owner)}${request.instanceId.slice(0, 8)}:`,
    variablePrefix: ownerVariable(request.owner),
    limits: request.limits,
    nofile,
    disks,
    shared: await sharedFilesystem(etc),
    log: request.log,
    ...(identities === undefined ? {} : { identities }),
    ...(cgroups.ok ? { cgroups: cgroups.hierarchy } : {}),
  };
  return { ground, cgroups };
}
