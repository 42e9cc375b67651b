import { statfs } from 'node:fs/promises';
import type { WorkerStatus } from '@runyard/contract/workers/worker-protocol';
import type { Logger } from 'pino';

/** Time between two looks at the disk, and shortest time between two test sandboxes. */
const everyMs = 5_000;
/** Free bytes that a worker needs to take runs: a gigabyte, but on small disks only this part of the disk. */
const leastFreeBytes = 1024 ** 3;
const leastFreePart = 0.05;
/** Returns how many free bytes a worker needs on a disk of this size to take runs. */
export const leastFreeOf = (totalBytes: number): number => Math.min(leastFreeBytes, totalBytes * leastFreePart);

/** A worker whose disk was full takes runs again when it has this many times the free bytes that it needs. */
const recovery = 1.5;

type Disk = WorkerStatus['data']['disk'];

export interface HealthOptions {
  /** Folder with the sandboxes. */
  readonly folder: string;
  /** Makes and removes a sandbox that belongs to no run. Rejects if this machine cannot make sandboxes now. */
  readonly trySandbox: () => Promise<void>;
  /** Called when the worker has a problem, has another one or has none any more. */
  readonly onChange: () => void;
  readonly log: Pick<Logger, 'warn' | 'info'>;
  /** Default: reads the file system of `folder`. */
  readonly readDisk?: (folder: string) => Promise<Disk | undefined>;
}

/** Knows whether this worker can make sandboxes now. A worker that cannot would fail all runs that it takes, one after another. */
export interface Health {
  /** Why the worker must take no new runs; undefined: it may. */
  problem(): string | undefined;
  /** The disk when it was looked at last; undefined: it could not be read. */
  disk(): Disk | undefined;
  /** Looks at the disk. If a sandbox could not be made, tries another one. */
  check(): Promise<void>;
  /** Must be called when the sandbox of a run could not be made. The cause may be the run, so a test sandbox decides. */
  doubt(): void;
  close(): void;
}

/** Watches the health of a worker until `close`. */
export async function watchHealth(options: HealthOptions): Promise<Health> {
  const { folder, trySandbox, onChange, log, readDisk = readFileSystem } = options;
  let disk: Disk | undefined;
  let problemOfDisk: string | undefined;
  let problemOfSandboxes: string | undefined;
  let told: string | undefined;
  let isOpen = false;
  let triedAt = Number.NEGATIVE_INFINITY;
  let trying: Promise<void> | undefined;

  const problem = (): string | undefined => problemOfDisk ?? problemOfSandboxes;
  const tell = (): void => {
    if (problem() === told) return;
    told = problem();
    if (told === undefined) log.info('the worker takes runs again');
    else log.warn({ problem: told }, 'the worker takes no new runs');
    if (isOpen) onChange();
  };

  const lookAtDisk = async (): Promise<void> => {
    disk = await readDisk(folder);
    if (disk === undefined) return;
    const least = leastFreeOf(disk.total_bytes);
    if (disk.free_bytes >= least * (problemOfDisk === undefined ? 1 : recovery)) problemOfDisk = undefined;
    else
      problemOfDisk ??= `its disk is nearly full: ${folder} had ${inMb(disk.free_bytes)} MB free, and new sandboxes need ${inMb(least)} MB. Free some space.`;
  };

  const attempt = async (): Promise<void> => {
    triedAt = performance.now();
    problemOfSandboxes = await trySandbox().then(
      () => undefined,
      (error: Error) => `a test sandbox could not be made: ${error.message}`,
    );
    tell();
  };
  const tryNow = (): Promise<void> => {
    trying ??= attempt().finally(() => {
      trying = undefined;
    });
    return trying;
  };

  const check = async (): Promise<void> => {
    await lookAtDisk();
    tell();
    if (problemOfSandboxes !== undefined) await tryNow();
  };
  await check();
  isOpen = true;
  const timer = setInterval(() => void check(), everyMs).unref();

  return {
    problem,
    disk: () => disk,
    check,
    doubt() {
      if (performance.now() - triedAt > everyMs) void tryNow();
    },
    close: () => clearInterval(timer),
  };
}

const inMb = (bytes: number): number => Math.floor(bytes / 1024 ** 2);

async function readFileSystem(folder: string): Promise<Disk | undefined> {
  const found = await statfs(folder).catch(() => undefined);
  return found && { free_bytes: found.bavail * found.bsize, total_bytes: found.blocks * found.bsize };
}
