/** Starts service processes on one database, without workers. */

import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { serviceNodeFlags } from '../../packages/cli/src/supervise/stack.ts';
import { compiledCode } from './compiled-code.ts';
import { programFile, quickStartFlags, sourceOf } from './programs.ts';
import { newSecretsKey } from './secrets-key.ts';
import { eventually, killHard } from './system.ts';

export interface OneService {
  readonly origin: string;
  readonly pid: number;
  /** Kills the process with SIGKILL. */
  kill(): Promise<void>;
  stop(): Promise<void>;
}

interface ServiceOptions {
  readonly databaseUrl: string;
  readonly key: string;
  /** Milliseconds by which the clock of the process is ahead of the machine's clock. If negative, the clock is behind. */
  readonly clockAheadMs?: number;
  readonly env?: Readonly<Record<string, string>>;
}

/** Returns a module that changes the time which `Date` returns. */
const movedClock = (ms: number): string =>
  `data:text/javascript,${encodeURIComponent(`
    const Real = Date;
    globalThis.Date = class Date extends Real {
      constructor(...parts) { parts.length === 0 ? super(Real.now() + ${ms}) : super(...parts); }
      static now() { return Real.now() + ${ms}; }
    };`)}`;

/**
 * For the URL of each database, the folder of blobs and the secrets key that all services of the database share. `users` is the number
 * of these services.
 */
const shared = new Map<string, { readonly folder: string; readonly key: string; users: number }>();

/** Returns the blobs and the secrets key of the services of a database, and a function to call when a service no longer uses them. */
async function shareBlobs(databaseUrl: string) {
  const place = shared.get(databaseUrl) ?? {
    folder: await mkdtemp(path.join(tmpdir(), 'runyard-blobs-')),
    key: newSecretsKey(),
    users: 0,
  };
  shared.set(databaseUrl, place);
  place.users += 1;
  return {
    folder: place.folder,
    key: place.key,
    async end() {
      place.users -= 1;
      if (place.users > 0) return;
      shared.delete(databaseUrl);
      await rm(place.folder, { recursive: true, force: true });
    },
  };
}

/** Starts a service process in a folder of its own. Resolves when the service listens. */
export async function startService({ databaseUrl, key, clockAheadMs, env }: ServiceOptions): Promise<OneService> {
  const clock = clockAheadMs === undefined ? [] : ['--import', movedClock(clockAheadMs)];
  const dataDir = await mkdtemp(path.join(tmpdir(), 'runyard-service-'));
  const blobs = await shareBlobs(databaseUrl);
  const program = await programFile('service');
  const flags = program === sourceOf('service') ? serviceNodeFlags : quickStartFlags;
  const child: ChildProcess = spawn(process.execPath, [...flags, ...clock, program, '--stop-with-parent'], {
    env: {
      PATH: process.env.PATH ?? '',
      HOME: process.env.HOME ?? '/',
      RUNYARD_DATA_DIR: dataDir,
      RUNYARD_DATABASE_URL: databaseUrl,
      RUNYARD_BOOTSTRAP_KEY: key,
      RUNYARD_SECRETS_KEY: blobs.key,
      RUNYARD_BLOBS: blobs.folder,
      RUNYARD_PORT: '0',
      RUNYARD_LOG: 'warn',
      ...compiledCode(),
      ...env,
    },
    stdio: ['pipe', 'ignore', 'inherit'],
  });
  const kill = () => killHard(child);
  const file = await eventually('start of the service', async () => {
    if (child.exitCode !== null) throw new Error(`the service exited with ${child.exitCode}`);
    return await readFile(path.join(dataDir, 'service.json'), 'utf8').catch(() => null);
  });
  const { base_url: origin } = JSON.parse(file) as { base_url: string };
  // A service writes the file even if it still waits for its database. Until the database answers, the service answers 503.
  await eventually('readiness of the service', () =>
    fetch(`${origin}/readyz`).then(
      (answer) => answer.ok,
      () => false,
    ),
  );
  return {
    origin,
    pid: child.pid ?? 0,
    kill,
    stop: async () => {
      await kill();
      await blobs.end();
      await rm(dataDir, { recursive: true, force: true, maxRetries: 20 });
    },
  };
}
