import { readFileSync, writeFileSync } from 'node:fs';
import { mkdir, rmdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { killProcesses, slowDeaths } from '../../state/processes.ts';
import { freezerGroups, openFreezer } from './freezer.ts';
import { type CgroupHierarchy, foldersOf } from './hierarchy.ts';

/** A cgroup, in which the kernel limits all processes of one sandbox together. */
export interface Cgroup {
  /** Adds a process. Until this resolves, which may take many milliseconds, the process must not start another process. */
  add(pid: number): Promise<void>;
  /**
   * If `isResting` is true, the group's processes get only the processor time that no other sandbox uses. If it is false, they get their
   * usual share again.
   */
  rest(isResting: boolean): void;
  /**
   * Freezes the group's processes, except those for which `stays` returns true. If `stays` is null, lets all processes continue. Does
   * nothing if this kernel cannot freeze processes.
   */
  freeze(stays: ((pid: number) => boolean) | null): void;
  /** Lets all processes continue, because SIGKILL may not end a frozen process. Freezes no process any more. */
  endFreeze(): void;
  /** Returns how many processes of the group the kernel killed because the group's memory was used up. */
  oomKills(): Promise<number>;
  /**
   * Kills the processes of the group until none is left, without a time limit. Then removes the group, because the kernel removes only an
   * empty group. Calls `onSlow` every few seconds with the remaining processes. Rejects if the empty group cannot be removed.
   */
  remove(onSlow: (pids: readonly number[]) => void): Promise<void>;
}

/**
 * Returns the text of a file of the kernel, or an empty text if the file does not exist. Reads synchronously, because the kernel
 * answers at once, and an asynchronous read would take longer on another thread.
 */
function textOf(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return '';
  }
}

/** Writes a limit if this kernel supports the limit. */
function writeIfThere(file: string, text: string): void {
  try {
    writeFileSync(file, text);
  } catch {
    // Ignores the error, because this kernel does not support the limit.
  }
}

/** Microseconds of a period. In each period, a group may use its share of the processors. This is the kernel's default. */
const cpuPeriod = 100_000;

/** Makes a group with limits. If there are no `limits`, opens an existing group, which the caller wants to remove. */
export async function openCgroup(
  hierarchy: CgroupHierarchy,
  name: string,
  limits?: { readonly memoryMb: number; readonly processes: number; readonly cpus: number },
): Promise<Cgroup> {
  const memory = path.join(hierarchy.memory, name);
  const pids = path.join(hierarchy.pids, name);
  const folders = foldersOf(hierarchy).map((folder) => path.join(folder, name));
  if (limits !== undefined) {
    for (const folder of folders) await mkdir(folder, { recursive: true });
    const bytes = String(limits.memoryMb * 1024 * 1024);
    if (hierarchy.version === 2) {
      writeFileSync(path.join(memory, 'memory.max'), bytes);
      // Forbids swap, so that the group cannot use more than the memory limit. The file is missing if the kernel does not count swap.
      writeIfThere(path.join(memory, 'memory.swap.max'), '0');
    } else {
      writeFileSync(path.join(memory, 'memory.limit_in_bytes'), bytes);
      writeIfThere(path.join(memory, 'memory.memsw.limit_in_bytes'), bytes);
    }
    writeFileSync(path.join(pids, 'pids.max'), String(limits.processes));
    if (hierarchy.cpu !== undefined && limits.cpus > 0) {
      const cpu = path.join(hierarchy.cpu, name);
      const quota = Math.round(limits.cpus * cpuPeriod);
      if (hierarchy.version === 2) writeFileSync(path.join(cpu, 'cpu.max'), `${quota} ${cpuPeriod}`);
      else writeFileSync(path.join(cpu, 'cpu.cfs_quota_us'), String(quota));
    }
  }
  const freezerFolder = hierarchy.freezer === undefined ? undefined : path.join(hierarchy.freezer, name);
  const freezer =
    limits === undefined || freezerFolder === undefined
      ? undefined
      : await openFreezer(hierarchy.version, freezerFolder);
  const innerFolders = freezerFolder === undefined ? [] : freezerGroups.map((group) => path.join(freezerFolder, group));
  const members = (): number[] => {
    const found = new Set<number>();
    for (const folder of [...folders, ...innerFolders]) {
      for (const pid of textOf(path.join(folder, 'cgroup.procs')).split('\n').filter(Boolean)) found.add(Number(pid));
    }
    return [...found];
  };
  return {
    async add(pid) {
      const limiting = folders.filter((folder) => freezer === undefined || folder !== freezerFolder);
      await Promise.all(limiting.map((folder) => writeFile(path.join(folder, 'cgroup.procs'), String(pid))));
      freezer?.add(pid);
    },
    rest(isResting) {
      if (hierarchy.cpu === undefined) return;
      const [file, least, usual] =
        hierarchy.version === 2 ? (['cpu.weight', 1, 100] as const) : (['cpu.shares', 2, 1024] as const);
      writeIfThere(path.join(hierarchy.cpu, name, file), String(isResting ? least : usual));
    },
    freeze(stays) {
      if (stays === null) freezer?.thaw();
      else freezer?.freeze(stays);
    },
    endFreeze: () => freezer?.close(),
    async oomKills() {
      const file = hierarchy.version === 2 ? 'memory.events' : 'memory.oom_control';
      return Number(/^oom_kill (\d+)$/m.exec(textOf(path.join(memory, file)))?.[1] ?? 0);
    },
    async remove(onSlow) {
      const report = slowDeaths(onSlow);
      if (freezer === undefined && freezerFolder !== undefined)
        (await openFreezer(hierarchy.version, freezerFolder)).close();
      freezer?.close();
      for (;;) {
        killProcesses(members());
        await Promise.all(innerFolders.map(removeGroup));
        const removals = await Promise.all(folders.map(removeGroup));
        const left = members();
        const refused = removals.find((removal) => removal instanceof Error);
        if (refused !== undefined && left.length === 0) throw refused;
        if (removals.every((removal) => removal === 'removed')) return;
        report(left);
        await sleep(5);
      }
    },
  };
}

/** Tries to remove a group. Returns `busy` if the group still contains a process. */
async function removeGroup(folder: string): Promise<'removed' | 'busy' | Error> {
  try {
    await rmdir(folder);
    return 'removed';
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT') return 'removed';
    return code === 'EBUSY' ? 'busy' : (error as Error);
  }
}
