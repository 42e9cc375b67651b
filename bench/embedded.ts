/**
 * Measures the embedded PostgreSQL: the time of a fresh start, of a second start and of a start after kill -9 of its processes, and its
 * memory.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as delay } from 'node:timers/promises';
import { silentLog } from '../packages/service/src/platform/store/database/log.ts';
import { chooseAccount } from '../packages/service/src/platform/store/embedded/account.ts';
import {
  copyPlaces,
  locateBinaries,
  prepareBinaries,
} from '../packages/service/src/platform/store/embedded/binaries.ts';
import { ensureCluster } from '../packages/service/src/platform/store/embedded/cluster.ts';
import { startEmbeddedPostgres } from '../packages/service/src/platform/store/embedded/start.ts';
import { killHard } from '../test/support/system.ts';
import { processesBelow, pssBelow } from './processes.ts';
import { median, report } from './report.ts';
import { timed } from './turns.ts';

const rounds = Number(process.env.BENCH_ROUNDS ?? 8);
const restMs = 5000;
const program = path.join(import.meta.dirname, '../test/support/writing-service.ts');

const times = new Map<string, number[]>();
const note = (what: string, ms: number) => times.set(what, [...(times.get(what) ?? []), ms]);

/**
 * A started process. `allMs` is the time from the process's start until its database has answered. `ownMs` is this time without the
 * start of Node.
 */
interface Start {
  readonly child: ChildProcess;
  /** Returns the number of rows that were acknowledged so far. */
  readonly rows: () => number;
  readonly allMs: number;
  readonly ownMs: number;
}

async function startWriting(folder: string): Promise<Start> {
  const began = performance.now();
  const child = spawn(process.execPath, [program, folder], { stdio: ['pipe', 'pipe', 'inherit'] });
  let rows = 0;
  const ready = Promise.withResolvers<number>();
  createInterface({ input: child.stdout }).on('line', (line) => {
    if (line.startsWith('ready ')) ready.resolve(Number(line.slice(6)));
    else rows += 1;
  });
  child.once('exit', () => ready.reject(new Error('it ended before its database answered')));
  const ownMs = await ready.promise;
  return { child, rows: () => rows, allMs: performance.now() - began, ownMs };
}

/** Waits until `holds` returns true; checks every few milliseconds, for at most 20 s. */
async function until(what: string, holds: () => boolean): Promise<void> {
  for (const end = performance.now() + 20_000; !holds(); await delay(3))
    if (performance.now() > end) throw new Error(`${what} did not happen`);
}
const moreRows = (start: Start, more: number) => {
  const goal = start.rows() + more;
  return until('writing', () => start.rows() >= goal);
};

/** Returns the process id and the state of the server from `postmaster.pid`. Returns an empty list if this file cannot be read. */
function postmasterOf(folder: string): [pid?: number, state?: string] {
  try {
    const lines = readFileSync(path.join(folder, 'cluster/postmaster.pid'), 'utf8').split('\n');
    return [Number(lines[0]), lines[7]?.trim() ?? ''];
  } catch {
    return [];
  }
}

/** Kills the processes that `alsoKill` returns, then the service, and starts the service again. */
async function startAfterKill(folder: string, what: string, alsoKill: () => number[], running: Start): Promise<Start> {
  await moreRows(running, 100);
  for (const pid of alsoKill()) {
    try {
      process.kill(pid, 'SIGKILL');
    } catch {
      // The process may already have ended by itself.
    }
  }
  await killHard(running.child);
  const next = await startWriting(folder);
  note(what, next.allMs);
  return next;
}

async function round(folder: string): Promise<void> {
  const account = await chooseAccount(path.join(folder, 'x/cluster'));
  const native = await prepareBinaries(await locateBinaries(), account, copyPlaces(folder));
  const clusterFolder = await mkdtemp(path.join(folder, 'initdb-'));
  note('initdb alone', await timed(() => ensureCluster(clusterFolder, native, account)));

  const data = path.join(folder, 'data');
  let running = await startWriting(data);
  try {
    note('first start, empty folder', running.ownMs);
    running.child.stdin?.end();
    await once(running.child, 'exit');
    running = await startWriting(data);
    note('start again', running.ownMs);
    running = await startAfterKill(data, 'kill -9 of the service', () => [], running);
    running = await startAfterKill(
      data,
      'kill -9 of the service and the guard',
      () => processesBelow(data, 'runyard-guard'),
      running,
    );
    running = await startAfterKill(data, 'kill -9 of everything', () => processesBelow(data), running);

    await moreRows(running, 100);
    const [killed] = postmasterOf(data);
    if (killed === undefined) throw new Error('there is no postmaster');
    const began = performance.now();
    process.kill(killed, 'SIGKILL');
    await until('the start of the next postmaster', () => {
      const [pid, state] = postmasterOf(data);
      return pid !== killed && state === 'ready';
    });
    await moreRows(running, 1);
    note('kill -9 of the postmaster', performance.now() - began);
  } finally {
    running.child.stdin?.end();
    if (running.child.exitCode === null) await once(running.child, 'exit');
  }
}

let idleMb = 0;
const folder = await mkdtemp(path.join(tmpdir(), 'runyard-bench-embedded-'));
try {
  for (let n = 0; n < rounds; n += 1) await round(await mkdtemp(path.join(folder, 'round-')));
  const data = path.join(folder, 'idle');
  const server = await startEmbeddedPostgres({ dataDir: data, log: silentLog });
  try {
    await delay(restMs);
    idleMb = pssBelow(data);
  } finally {
    await server.stop();
  }
} finally {
  await rm(folder, { recursive: true, force: true });
}
const row = (name: string, what: string) => {
  const sample = times.get(what) ?? [];
  return [name, Math.round(median(sample)), Math.round(Math.max(...sample))];
};
report(
  'The embedded PostgreSQL',
  `${rounds} rounds. All times are in milliseconds. Before a kill -9, eight loops write to the database, and they still write at the moment of the kill. The time of the start after it begins with the start of the next process, includes the start of Node, and ends with the first answer of the database. At rest, without a client, the database uses **${idleMb} MB** (PSS, all processes and the guard).`,
  ['what', 'median', 'max'],
  [
    row('first start on an empty folder, within the service', 'first start, empty folder'),
    row('… of which initdb (measured separately)', 'initdb alone'),
    row('start again, within the service', 'start again'),
    row('start after kill -9 of the service', 'kill -9 of the service'),
    row('start after kill -9 of service and guard', 'kill -9 of the service and the guard'),
    row('start after kill -9 of everything', 'kill -9 of everything'),
    row('kill -9 of the postmaster, to the next acknowledged row', 'kill -9 of the postmaster'),
  ],
);
