import { randomUUID } from 'node:crypto';
import { mkdir, realpath } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { readHolder, tryClaim } from '@runyard/system/claim';
import { isIdentity, type ProcessIdentity, stateOf, thisProcess } from '@runyard/system/process-identity';

/** The lock of the folder `worker` in the data folder. Only the process with the lock may use the folder. */
export interface DataFolderLock {
  /** `{data dir}/worker`, absolute and without symbolic links. */
  readonly folder: string;
  /** Random id of this process. */
  readonly instanceId: string;
  /** Releases the folder for the next process. The kernel also releases it when this process dies. */
  release(): Promise<void>;
}

/**
 * Takes the lock of `{dataDir}/worker` for this process. The lock also works between containers that share the folder. If another process
 * has the lock, returns `heldBy` with the name of this process.
 */
export async function lockDataFolder(dataDir: string): Promise<DataFolderLock | { heldBy: string }> {
  const wanted = path.join(dataDir, 'worker');
  await mkdir(wanted, { recursive: true, mode: 0o700 });
  const folder = await realpath(wanted);
  const files = { lock: path.join(folder, 'lock'), holder: path.join(folder, 'holder.json') };
  const instanceId = randomUUID();
  const claim = tryClaim(files, { instance_id: instanceId, ...thisProcess() });
  if (claim === undefined) return { heldBy: describeHolder(readHolder(files.holder, isIdentity)) };
  return { folder, instanceId, release: async () => claim.release() };
}

/**
 * Takes the lock as `lockDataFolder` does. If another process has the lock, calls `onWait` with the name of this process and waits for the
 * lock, but at most `patienceMs`.
 */
export async function waitForDataFolder(
  dataDir: string,
  patienceMs: number,
  onWait: (holder: string) => void = () => {},
): Promise<DataFolderLock | { heldBy: string }> {
  const deadline = performance.now() + patienceMs;
  const folder = path.resolve(dataDir);
  let lock = await lockDataFolder(folder);
  if ('heldBy' in lock && patienceMs > 0) onWait(lock.heldBy);
  while ('heldBy' in lock && performance.now() < deadline) {
    await sleep(50);
    lock = await lockDataFolder(folder);
  }
  return lock;
}

/** Returns a name such as `process 123`. The name of a process in another container has no pid, because that pid means nothing here. */
function describeHolder(holder: ProcessIdentity | undefined): string {
  if (holder === undefined) return 'another worker';
  return stateOf(holder) === 'elsewhere' ? 'a worker in another container' : `process ${holder.pid}`;
}
