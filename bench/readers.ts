/** Starts the process of `stream-readers.ts`, and reads the memory of the server process. */
import { spawn } from 'node:child_process';
import { readFileSync, rmSync } from 'node:fs';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { eventually } from '../test/support/system.ts';

export interface Readers {
  /** Opens one stream for each path. A path is relative to `/api/v1`. */
  open(server: { readonly port: number; readonly key: string; readonly paths: readonly string[] }): Promise<void>;
  /** Returns how many streams are open, how many are broken, and the lags in milliseconds since the last report. */
  takeReport(): Promise<{ open: number; lost: number; lags: number[] }>;
  stop(): Promise<void>;
}

/** Returns how many files a process may open. Throws if this number of streams needs more open files. */
export function checkOpenFiles(streams: number): number {
  const limit = Number(/^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8'))?.[1]);
  if (limit >= streams + 500) return limit;
  throw new Error(
    `${streams} streams need as many open files in each process, the limit is ${limit}: ulimit -n ${streams + 500}`,
  );
}

export async function startReaders(): Promise<Readers> {
  const child = spawn(process.execPath, [path.join(import.meta.dirname, 'stream-readers.ts')], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const ask = async (command: object) => {
    child.stdin.write(`${JSON.stringify(command)}\n`);
    const { value, done } = await lines.next();
    if (done) throw new Error('the readers have ended');
    return JSON.parse(value) as { open: number; lost: number; lags: number[] };
  };
  return {
    open: async ({ port, key, paths }) => {
      await ask({ open: { port, key, paths: paths.map((each) => `/api/v1${each}`) } });
    },
    takeReport: () => ask({ report: true }),
    stop: async () => {
      const exited = new Promise((resolve) => child.once('exit', resolve));
      child.stdin.end();
      await exited;
    },
  };
}

/** Returns the environment of a process that writes its memory to `file`. */
export const probedEnvironment = (file: string): Record<string, string> => ({
  NODE_OPTIONS: `--import=${path.join(import.meta.dirname, 'memory-probe.ts')}`,
  BENCH_MEMORY_FILE: file,
});

export interface ProbedMemory {
  /** Bytes of live objects in the heap. `rss`: resident bytes of the process. */
  readonly heapUsed: number;
  readonly rss: number;
  /** Bytes of memory that the kernel uses for the TCP sockets of this network namespace. */
  readonly sockets: number;
}

/** Reads the memory after a garbage collection. */
export async function probeMemory(pid: number, file: string): Promise<ProbedMemory> {
  rmSync(file, { force: true });
  process.kill(pid, 'SIGUSR2');
  const text = await eventually('the memory of the process', async () => {
    try {
      return readFileSync(file, 'utf8');
    } catch {
      return null;
    }
  });
  rmSync(file, { force: true });
  const sockets = Number(/^TCP: .* mem (\d+)/m.exec(readFileSync('/proc/net/sockstat', 'utf8'))?.[1]) * 4096;
  return { ...JSON.parse(text), sockets };
}
