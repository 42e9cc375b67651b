/** Starts service processes on one database, without workers. */

import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync } from 'node:fs';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { serviceNodeFlags } from '../../packages/cli/src/supervise/stack.ts';
import { onDrop } from '../../packages/service/test/database.ts';
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

/** For the URL of each database, the folder of blobs and the secrets key that all services of the database share. */
const shared = new Map<string, { readonly folder: string; readonly key: string }>();

onDrop(async (databaseUrl) => {
  const place = shared.get(databaseUrl);
  shared.delete(databaseUrl);
  if (place !== undefined) await rm(place.folder, { recursive: true, force: true });
});

/** Returns the folder of blobs and the secrets key of the services of a database. */
function placeOf(databaseUrl: string): { readonly folder: string; readonly key: string } {
  const known = shared.get(databaseUrl);
  if (known !== undefined) return known;
  const place = { folder: mkdtempSync(path.join(tmpdir(), 'runyard-blobs-')), key: newSecretsKey() };
  shared.set(databaseUrl, place);
  return place;
}

/** Starts a service process in a folder of its own. Resolves when the service listens. */
export async function startService({ databaseUrl, key, clockAheadMs, env }: ServiceOptions): Promise<OneService> {
  const clock = clockAheadMs === undefined ? [] : ['--import', movedClock(clockAheadMs)];
  const dataDir = await mkdtemp(path.join(tmpdir(), 'runyard-service-'));
  const blobs = placeOf(databaseUrl);
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
  let last = 'no answer';
  await eventually('readiness of the service', async () => {
    const answer = await fetch(`${origin}/readyz`).catch(() => undefined);
    if (answer !== undefined) last = await answer.text();
    return answer?.ok;
  }).catch((error: Error) => {
    throw new Error(`${error.message}: ${last}`);
  });
  return {
    origin,
    pid: child.pid ?? 0,
    kill,
    stop: async () => {
      await kill();
      await rm(dataDir, { recursive: true, force: true, maxRetries: 20 });
    },
  };
}
