import { randomUUID } from 'node:crypto';
import { mkdir, realpath } from 'node:fs/promises';
import path from 'node:path';
import { readHolder, tryClaim } from '@runyard/system/claim';
import { isIdentity, type ProcessIdentity, stateOf, thisProcess } from '@runyard/system/process-identity';

/** The worker's part of the data folder, which only this process may use. */
export interface DataFolderLock {
  /** `{data dir}/worker`, absolute and without symbolic links. */
  readonly folder: string;
  /** Id of this process; new on each start. */
  readonly instanceId: string;
  /** Releases the folder for the next process. The kernel also releases it when this process dies. */
  release(): Promise<void>;
}

/** Takes `{dataDir}/worker` for this process. Containers that share the folder see the lock too. `heldBy` names another holder. */
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

/** Returns `process 123`; for a process of another container, omits the number, because it means nothing here. */
function describeHolder(holder: ProcessIdentity | undefined): string {
  if (holder === undefined) return 'another worker';
  return stateOf(holder) === 'elsewhere' ? 'a worker in another container' : `process ${holder.pid}`;
}
