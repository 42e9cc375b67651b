import { readdir, readFile, readlink, stat } from 'node:fs/promises';

const gone = (): undefined => undefined;

/**
 * Returns how many bytes deleted files take on these devices because these processes still have the files open. Skips processes that the
 * worker must not inspect.
 */
export async function unlinkedBytes(
  pids: readonly number[],
  devices: ReadonlySet<number>,
  signal: AbortSignal,
): Promise<number> {
  const counted = new Set<number>();
  let bytes = 0;
  for (const pid of pids) {
    const folder = `/proc/${pid}/fd`;
    for (const descriptor of await readdir(folder).catch(() => [])) {
      signal.throwIfAborted();
      const file = await stat(`${folder}/${descriptor}`).catch(gone);
      if (!file?.isFile() || file.nlink > 0 || !devices.has(file.dev) || counted.has(file.ino)) continue;
      counted.add(file.ino);
      bytes += file.blocks * 512;
    }
  }
  return bytes;
}

/** Returns all processes in the pid namespace of `pid`. No process can leave this namespace. */
export async function processesBeside(pid: number): Promise<number[]> {
  const namespaceOf = (name: string) => readlink(`/proc/${name}/ns/pid`).catch(gone);
  const own = await namespaceOf(String(pid));
  if (own === undefined) return [];
  const found: number[] = [];
  for (const name of await readdir('/proc')) {
    if (/^\d+$/.test(name) && (await namespaceOf(name)) === own) found.push(Number(name));
  }
  return found;
}

/**
 * Returns the process and all its descendants, whatever their namespaces are. Is used for gVisor, which puts its processes into separate
 * namespaces.
 */
export async function processesBelow(pid: number): Promise<number[]> {
  const found = [pid];
  for (const parent of found) {
    for (const thread of await readdir(`/proc/${parent}/task`).catch(() => [])) {
      const children = await readFile(`/proc/${parent}/task/${thread}/children`, 'utf8').catch(() => '');
      found.push(...children.split(' ').filter(Boolean).map(Number));
    }
  }
  return found;
}
