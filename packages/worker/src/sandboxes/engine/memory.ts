import { readFile } from 'node:fs/promises';
import path from 'node:path';

const mounts = '/sys/fs/cgroup';

/**
 * Returns how many processes the kernel has killed in the cgroup of this process because its memory was used up. Returns 0 if the
 * number cannot be read.
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
