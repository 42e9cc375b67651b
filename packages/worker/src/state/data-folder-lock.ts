import { randomUUID } from 'node:crypto';
import { mkdir, readFile, readlink, realpath, rename, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { tryLockFile } from '@runyard/contract/file-lock';
import { z } from 'zod';

const Holder = z.object({ instance_id: z.string(), pid: z.int(), pid_namespace: z.string().optional() });
type Holder = z.infer<typeof Holder>;

/** The worker's part of the data folder, held by this process alone. */
export interface DataFolderLock {
  /** `{data dir}/worker`, absolute and without symbolic links. */
  readonly folder: string;
  /** Of this process; new on each start. */
  readonly instanceId: string;
  /** Instances that held the folder before; their processes are dead. */
  readonly replaces: readonly string[];
  /** Lets the next process in. The kernel does it too when this one dies. */
  release(): Promise<void>;
}

/**
 * Takes `{dataDir}/worker` for this process, by a lock of the kernel on `{dataDir}/worker/lock`: it needs no clean-up after
 * kill -9, two starters cannot both win, and containers that share the folder see it too. `holder.json` only names the holder.
 */
export async function lockDataFolder(dataDir: string): Promise<DataFolderLock | { heldBy: string }> {
  const wanted = path.join(dataDir, 'worker');
  await mkdir(wanted, { recursive: true, mode: 0o700 });
  const folder = await realpath(wanted);
  const file = path.join(folder, 'holder.json');
  const lock = tryLockFile(path.join(folder, 'lock'));
  const pidNamespace = await readlink('/proc/self/ns/pid');
  const before = await readHolder(file);
  if (lock === undefined) return { heldBy: describeHolder(before, pidNamespace) };
  const holder = { instance_id: randomUUID(), pid: process.pid, pid_namespace: pidNamespace };
  try {
    await writeFile(`${file}.new`, `${JSON.stringify(holder)}\n`, { mode: 0o600 });
    await rename(`${file}.new`, file);
  } catch (error) {
    lock.release();
    throw error;
  }
  return {
    folder,
    instanceId: holder.instance_id,
    replaces: before === undefined ? [] : [before.instance_id],
    release: async () => lock.release(),
  };
}

/** `process 123`; its number says nothing to other containers. */
function describeHolder(holder: Holder | undefined, ownNamespace: string): string {
  if (holder === undefined) return 'another worker';
  return holder.pid_namespace === ownNamespace ? `process ${holder.pid}` : 'a worker in another container';
}

async function readHolder(file: string): Promise<Holder | undefined> {
  const text = await readFile(file, 'utf8').catch(() => undefined);
  if (text === undefined) return undefined;
  try {
    return Holder.safeParse(JSON.parse(text)).data;
  } catch {
    return undefined;
  }
}
