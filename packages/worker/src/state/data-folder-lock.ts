import { randomUUID } from 'node:crypto';
import { mkdir, readFile, realpath, rename, stat, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:net';
import path from 'node:path';
import { z } from 'zod';
import { processStartTime } from './processes.ts';

const Holder = z.object({ instance_id: z.string(), pid: z.int(), start_time: z.string(), boot_id: z.string() });

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

/** Listens on an abstract Unix socket: a name that one process can have, which the kernel frees when that process dies. `undefined`: taken. */
export async function takeName(name: string): Promise<Server | undefined> {
  const server = createServer((socket) => socket.destroy());
  return new Promise((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) =>
      error.code === 'EADDRINUSE' ? resolve(undefined) : reject(error),
    );
    server.listen({ path: `\0${name}` }, () => {
      server.unref();
      resolve(server);
    });
  });
}

/**
 * Takes `{dataDir}/worker` for this process. The lock is an abstract socket named after the folder's inode, so it needs no
 * clean-up after kill -9 and two starters cannot both win. Such names are per network namespace: a holder in another one that
 * shares the process table is recognised by the pid and start time in `holder.json`.
 */
export async function lockDataFolder(dataDir: string): Promise<DataFolderLock | { heldBy: string }> {
  const wanted = path.join(dataDir, 'worker');
  await mkdir(wanted, { recursive: true, mode: 0o700 });
  const folder = await realpath(wanted);
  const { dev, ino } = await stat(folder);
  const server = await takeName(`runyard-worker-${dev}-${ino}`);
  const file = path.join(folder, 'holder.json');
  const before = await readHolder(file);
  const bootId = (await readFile('/proc/sys/kernel/random/boot_id', 'utf8')).trim();
  const holds = before !== undefined && before.boot_id === bootId && before.pid !== process.pid;
  const alive = holds && (await processStartTime(before.pid)) === before.start_time;
  if (server === undefined) return { heldBy: before === undefined ? 'another worker' : `process ${before.pid}` };
  if (alive && !(await released(before.pid))) {
    server.close();
    return { heldBy: `process ${before.pid}` };
  }
  const instanceId = randomUUID();
  const startTime = (await processStartTime(process.pid)) ?? '';
  const holder = { instance_id: instanceId, pid: process.pid, start_time: startTime, boot_id: bootId };
  await writeFile(`${file}.new`, `${JSON.stringify(holder)}\n`, { mode: 0o600 });
  await rename(`${file}.new`, file);
  return {
    folder,
    instanceId,
    replaces: before === undefined ? [] : [before.instance_id],
    release: () => new Promise((resolve) => server.close(() => resolve())),
  };
}

/** True where the process lives in our own network namespace: it would have the name if it still held the folder. */
async function released(pid: number): Promise<boolean> {
  const [own, other] = await Promise.all([namespaceOf('self'), namespaceOf(String(pid))]);
  return own !== undefined && own === other;
}

async function namespaceOf(pid: string): Promise<string | undefined> {
  const found = await stat(`/proc/${pid}/ns/net`).catch(() => undefined);
  return found === undefined ? undefined : `${found.dev}:${found.ino}`;
}

async function readHolder(file: string): Promise<z.infer<typeof Holder> | undefined> {
  const text = await readFile(file, 'utf8').catch(() => undefined);
  if (text === undefined) return undefined;
  try {
    return Holder.safeParse(JSON.parse(text)).data;
  } catch {
    return undefined;
  }
}
