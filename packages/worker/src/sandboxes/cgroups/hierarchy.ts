import { constants } from 'node:fs';
import { access, mkdir, readdir, readFile, rmdir, writeFile } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import path from 'node:path';

/** Folders in which this worker may create groups: one folder for version 2, or one for each controller of version 1. */
export interface CgroupHierarchy {
  readonly version: 1 | 2;
  readonly memory: string;
  readonly pids: string;
  /** Folder for limits of processors. Absent if the kernel cannot limit processors in these groups. */
  readonly cpu?: string | undefined;
  /** Folder for freezing processes. Absent if the kernel cannot freeze processes in these groups. */
  readonly freezer?: string | undefined;
}

export type CgroupSearch = { ok: true; hierarchy: CgroupHierarchy } | { ok: false; reason: string };

/** Texts from which `findCgroups` learns the mounts and the group of this process. Tests pass other texts. */
export interface CgroupFiles {
  /** Text of /proc/self/cgroup. */
  readonly membership: string;
  /** Text of /proc/self/mountinfo. */
  readonly mounts: string;
}

interface Mount {
  readonly root: string;
  readonly point: string;
  readonly version: 1 | 2;
  readonly controllers: readonly string[];
}

/**
 * Returns the cgroup mounts in the text of `mountinfo` (proc(5)). Field 4 of a line is the group that is mounted, and field 5 is the
 * mount point. After ` - `, the type, the source and the options follow.
 */
function parseMounts(text: string): Mount[] {
  return text.split('\n').flatMap((line): Mount[] => {
    const [before = '', after = ''] = line.split(' - ');
    const [, , , root = '/', point = ''] = before.split(' ');
    const [type, , options = ''] = after.split(' ');
    if (type === 'cgroup2') return [{ root, point, version: 2, controllers: [] }];
    return type === 'cgroup' ? [{ root, point, version: 1, controllers: options.split(',') }] : [];
  });
}

/** Returns the folder of the group to which this process belongs in the mount. */
function ownGroup(mount: Mount, membership: string): string | undefined {
  for (const line of membership.split('\n')) {
    const [, controllers = '', group = ''] = /^\d+:([^:]*):(.*)$/.exec(line) ?? [];
    const same =
      mount.version === 2
        ? line.startsWith('0::')
        : controllers.split(',').some((c) => c !== '' && mount.controllers.includes(c));
    if (!same) continue;
    // In a container, the mount may begin at the group of the container. Then the groups above it do not exist here.
    const below = mount.root === '/' ? group : group.startsWith(mount.root) ? group.slice(mount.root.length) : '/';
    return path.join(mount.point, below);
  }
  return undefined;
}

const readWords = async (file: string): Promise<string[]> =>
  (await readFile(file, 'utf8').catch(() => '')).split(/\s+/).filter(Boolean);

async function writable(folder: string): Promise<boolean> {
  return access(folder, constants.W_OK).then(
    () => true,
    () => false,
  );
}

/**
 * If programs outside of the sandboxes need processors too, all sandboxes together get as much processor time as this number of such
 * programs: two for each processor of the machine. So the service gets enough processor time, however many processes run in sandboxes, and
 * the sandboxes get enough on a busy machine.
 */
const programs = 2 * availableParallelism();
const shares = { version1: 1024 * programs, version2: Math.min(100 * programs, 10_000) } as const;

/** Finds a folder in which a group can limit memory and processes, and makes the group `name` there. */
export async function findCgroups(name: string, files: CgroupFiles): Promise<CgroupSearch> {
  const mounts = parseMounts(files.mounts);
  const memory = mounts.find((mount) => mount.controllers.includes('memory'));
  const pids = mounts.find((mount) => mount.controllers.includes('pids'));
  if (memory !== undefined && pids !== undefined) {
    const cpu = mounts.find((mount) => mount.controllers.includes('cpu'));
    const freezer = mounts.find((mount) => mount.controllers.includes('freezer'));
    return versionOne(name, { memory, pids, cpu, freezer }, files.membership);
  }
  const unified = mounts.find((mount) => mount.version === 2);
  if (unified !== undefined) return versionTwo(name, unified, files.membership);
  return { ok: false, reason: 'no cgroup filesystem is mounted' };
}

/** Makes the group in a hierarchy of version 1. Returns its folder. */
async function makeGroup(name: string, mount: Mount, membership: string): Promise<string> {
  const own = ownGroup(mount, membership) ?? mount.point;
  const folder = path.join((await writable(own)) ? own : mount.point, name);
  await mkdir(folder, { recursive: true });
  return folder;
}

async function versionOne(
  name: string,
  mounts: Readonly<Record<'memory' | 'pids', Mount> & Record<'cpu' | 'freezer', Mount | undefined>>,
  membership: string,
): Promise<CgroupSearch> {
  try {
    const memory = await makeGroup(name, mounts.memory, membership);
    const pids = await makeGroup(name, mounts.pids, membership);
    const cpu = mounts.cpu && (await makeGroup(name, mounts.cpu, membership).catch(() => undefined));
    const freezer = mounts.freezer && (await makeGroup(name, mounts.freezer, membership).catch(() => undefined));
    if (cpu !== undefined) await writeFile(path.join(cpu, 'cpu.shares'), String(shares.version1)).catch(() => {});
    return { ok: true, hierarchy: { version: 1, memory, pids, cpu, freezer } };
  } catch (error) {
    const { code, path: folder = 'a group' } = error as NodeJS.ErrnoException;
    return { ok: false, reason: `cannot make ${folder} (${code}): the worker has no right to make cgroups` };
  }
}

/**
 * Returns the controllers that a group of version 2 delegates to its subgroups. If the group delegates no controllers and has no processes,
 * first makes the group delegate the available controllers. This is necessary, because systemd leaves this step to the program that owns
 * the group (`DelegateSubgroup`).
 */
async function handDown(group: string): Promise<string[]> {
  const file = path.join(group, 'cgroup.subtree_control');
  const handedDown = await readWords(file);
  if (handedDown.length > 0 || (await readWords(path.join(group, 'cgroup.procs'))).length > 0) return handedDown;
  const available = await readWords(path.join(group, 'cgroup.controllers'));
  const wanted = ['memory', 'pids', 'cpu'].filter((controller) => available.includes(controller));
  if (wanted.length > 0) await writeFile(file, wanted.map((name) => `+${name}`).join(' ')).catch(() => {});
  return await readWords(file);
}

/**
 * In version 2, a group can have limits only if its parent delegates the controllers. Except for the root, such a parent must not contain
 * processes. So the new group cannot be below the worker's own group, which contains the worker. The new group is created next to the
 * worker's own group or further up: in the nearest writable group that delegates the memory and pids controllers.
 */
async function versionTwo(name: string, mount: Mount, membership: string): Promise<CgroupSearch> {
  const own = ownGroup(mount, membership) ?? mount.point;
  const needed = ['memory', 'pids'];
  let reason = `no group above ${own} is writable and hands down the memory and pids controllers; run the worker under systemd with Delegate=yes and DelegateSubgroup=worker, or as root`;
  for (let at = own; at.startsWith(mount.point); at = path.dirname(at)) {
    if (!(await writable(at))) continue;
    const handedDown = await handDown(at);
    if (!needed.every((controller) => handedDown.includes(controller))) continue;
    const folder = path.join(at, name);
    try {
      await mkdir(folder, { recursive: true });
      const cpu = handedDown.includes('cpu') ? folder : undefined;
      await writeFile(path.join(folder, 'cgroup.subtree_control'), `+memory +pids${cpu === undefined ? '' : ' +cpu'}`);
      if (cpu !== undefined) await writeFile(path.join(cpu, 'cpu.weight'), String(shares.version2)).catch(() => {});
      // Linux before 5.2 does not have the file cgroup.freeze.
      const freezer = (await writable(path.join(folder, 'cgroup.freeze'))) ? folder : undefined;
      return { ok: true, hierarchy: { version: 2, memory: folder, pids: folder, cpu, freezer } };
    } catch (error) {
      reason = `cannot hand down limits in ${folder} (${(error as NodeJS.ErrnoException).code})`;
    }
  }
  return { ok: false, reason };
}

/** Returns the folders of the hierarchy without duplicates. */
export const foldersOf = ({ memory, pids, cpu, freezer }: CgroupHierarchy): string[] => [
  ...new Set([memory, pids, cpu, freezer].filter((folder) => folder !== undefined)),
];

/** Returns the names of the groups in the hierarchy. */
export async function listGroups(hierarchy: CgroupHierarchy): Promise<string[]> {
  const names = new Set<string>();
  for (const folder of foldersOf(hierarchy)) {
    for (const entry of await readdir(folder, { withFileTypes: true }).catch(() => [])) {
      if (entry.isDirectory()) names.add(entry.name);
    }
  }
  return [...names];
}

/** Removes the group in which the worker made the groups of its sandboxes. Must be called when it contains no groups any more. */
export async function removeHierarchy(hierarchy: CgroupHierarchy): Promise<void> {
  for (const folder of new Set(foldersOf(hierarchy))) await rmdir(folder).catch(() => {});
}
