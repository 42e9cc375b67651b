import { randomUUID } from 'node:crypto';
import { chmod, mkdir, mkdtemp, readFile, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { type ImageSupport, probeImages } from '../../state/disk-image.ts';
import { type CgroupHierarchy, type CgroupSearch, findCgroups, removeHierarchy } from '../cgroups/hierarchy.ts';
import type { Gvisor } from '../gvisor/find-gvisor.ts';
import type { SandboxLimits } from '../limits.ts';
import { ownerLabel, ownerVariable } from '../markers.ts';
import { sharedFilesystem, writeEtc } from './filesystem.ts';

/** The parts that all bubblewrap sandboxes of a worker share. */
export interface BubblewrapGround {
  /** Path of bwrap. */
  readonly program: string;
  /** If this is set, programs in the sandboxes run on the kernel of gVisor. Otherwise these programs run on the kernel of the machine. */
  readonly gvisor?: Gvisor;
  readonly stateRoot: string;
  /**
   * The first process of each sandbox has a label that begins with this prefix. The prefix names the data folder and the process of the
   * worker.
   */
  readonly labelPrefix: string;
  /** Prefix of the environment variable that marks the processes in sandboxes of this data folder. */
  readonly variablePrefix: string;
  /** Default limits of a sandbox. */
  readonly limits: SandboxLimits;
  /** Descriptors that a process may open: 65,536, or the worker's own limit if that is lower. */
  readonly nofile: number;
  /** Options from `sharedFilesystem`. */
  readonly shared: readonly string[];
  /** Folder with programs of harnesses, which sandboxes with their own Debian also see. */
  readonly harnessDir?: string;
  /** True if each sandbox has a separate user. False if the worker is not root: then all sandboxes run under the user of the worker. */
  readonly ownUsers: boolean;
  readonly cgroups?: CgroupHierarchy;
  /** Whether each sandbox can have a separate disk, and if not, why. */
  readonly disks: ImageSupport;
  readonly log: { warn(fields: object, message: string): void };
}

const mostFiles = 65_536;

/** Returns how many files a sandbox may open: at most this process's own hard limit. */
export async function nofileLimit(): Promise<number> {
  const text = await readFile('/proc/self/limits', 'utf8').catch(() => '');
  const hard = /^Max open files\s+\S+\s+(\d+|unlimited)/m.exec(text)?.[1];
  return hard === undefined || hard === 'unlimited' ? mostFiles : Math.min(mostFiles, Number(hard));
}

export interface GroundRequest {
  readonly program: string;
  readonly gvisor?: Gvisor | undefined;
  readonly stateRoot: string;
  /** Id of the data folder from `chooseStateRoot`. The labels of cgroups and processes contain this id. */
  readonly owner: string;
  readonly instanceId: string;
  readonly limits: SandboxLimits;
  /** Folder with programs of harnesses. All sandboxes can read this folder. */
  readonly harnessDir?: string | undefined;
  readonly log: BubblewrapGround['log'];
}

/** Finds or creates the worker's cgroup; the cgroup of each sandbox is created in it. */
export async function findWorkerCgroups(owner: string): Promise<CgroupSearch> {
  const membership = await readFile('/proc/self/cgroup', 'utf8').catch(() => '');
  const mounts = await readFile('/proc/self/mountinfo', 'utf8').catch(() => '');
  return findCgroups(`runyard-${owner}`, { membership, mounts });
}

/** Makes the folders and cgroups that all sandboxes of this worker share. If the worker cannot use cgroups, `cgroups` has the reason. */
export async function makeGround(request: GroundRequest): Promise<{ ground: BubblewrapGround; cgroups: CgroupSearch }> {
  await mkdir(path.join(request.stateRoot, 's'), { recursive: true, mode: 0o711 });
  const [etc, cgroups, nofile, disks] = await Promise.all([
    writeEtc(request.stateRoot),
    findWorkerCgroups(request.owner),
    nofileLimit(),
    probeImages(request.stateRoot),
  ]);
  const ground: BubblewrapGround = {
    program: request.program,
    ...(request.gvisor === undefined ? {} : { gvisor: request.gvisor }),
    stateRoot: request.stateRoot,
    labelPrefix: `${ownerLabel(request.owner)}${request.instanceId.slice(0, 8)}:`,
    variablePrefix: ownerVariable(request.owner),
    limits: request.limits,
    nofile,
    disks,
    shared: await sharedFilesystem(etc, request.harnessDir),
    ...(request.harnessDir === undefined ? {} : { harnessDir: request.harnessDir }),
    log: request.log,
    ownUsers: process.getuid?.() === 0,
    ...(cgroups.ok ? { cgroups: cgroups.hierarchy } : {}),
  };
  return { ground, cgroups };
}

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
