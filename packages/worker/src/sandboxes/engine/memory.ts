import { readFile } from 'node:fs/promises';
import path from 'node:path';

const mounts = '/sys/fs/cgroup';

/**
 * Returns how many processes in the cgroup of a process the kernel has killed because memory was used up. 0: none, or the number cannot be
 * read.
 */
export async function oomKillsOf(pid: number): Promise<number> {
  if (pid <= 0) return 0;
  const membership = await readFile(`/proc/${pid}/cgroup`, 'utf8').catch(() => '');
  for (const line of membership.split('\n')) {
    const [, controllers = '', group = ''] = /^\d+:([^:]*):(.*)$/.exec(line) ?? [];
    const file =
      controllers === ''
        ? path.join(mounts, group, 'memory.events')
        : controllers.split(',').includes('memory')
          ? path.join(mounts, 'memory', group, 'memory.oom_control')
          : undefined;
    if (file === undefined) continue;
    const count = /^oom_kill (\d+)$/m.exec(await readFile(file, 'utf8').catch(() => ''))?.[1];
    if (count !== undefined) return Number(count);
  }
  return 0;
}
