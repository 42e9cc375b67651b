/** Kills the embedded database in the middle of writes. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import path from 'node:path';
import { createInterface } from 'node:readline';
import pg from 'pg';
import { afterAll, afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { findEmbeddedPostgres } from '../packages/service/src/platform/store/embedded/start.ts';
import { newFolder } from './support/close-at-end.ts';
import { giveDatabase } from './support/head-start.ts';
import { isLong } from './support/long.ts';
import { programFile } from './support/programs.ts';

/**
 * Number of kills of each kind. There must be at least two: after one kill, the service starts while the old database is still
 * stopping, and after another kill, the service starts later.
 */
const rounds = isLong ? 10 : 2;
/**
 * Limit for the start of a service. It is long, because tests run on shared machines.
 */
const maxStartMs = 30_000;
const program = await programFile('writing-service');

/** `home` is the data folder. `folder` is the folder of the database inside it. */
let home: string;
let folder: string;
let acknowledged: Set<string>;
let services: WritingService[];
const measured = new Map<string, number[]>();

beforeEach(() => {
  home = newFolder();
  folder = path.join(home, 'postgres');
  acknowledged = new Set();
  services = [];
});
afterEach(async () => {
  for (const service of services) service.child.kill('SIGKILL');
  await vi.waitFor(() => expect(processesIn(folder)).toEqual([]), { timeout: 60_000 });
});
afterAll(() => {
  for (const [what, times] of measured) {
    const sorted = times.toSorted((a, b) => a - b);
    console.log(`${what}: median ${sorted[sorted.length >> 1]} ms, max ${sorted.at(-1)} ms, ${times.length} times`);
  }
});

interface WritingService {
  readonly child: ChildProcess;
  /** Milliseconds from the start of the process to the first answer of the database, including the start of Node. */
  readonly startMs: number;
}

/** Starts a service. Resolves when the database has answered the service. */
async function startService(): Promise<WritingService> {
  const startedAt = performance.now();
  const child = spawn(process.execPath, [program, folder], { stdio: ['pipe', 'pipe', 'inherit'] });
  const service = { child, startMs: 0 };
  services.push(service);
  const ready = Promise.withResolvers<void>();
  createInterface({ input: child.stdout }).on('line', (line) => {
    const [kind, value = ''] = line.split(' ');
    if (kind === 'ready') ready.resolve();
    else acknowledged.add(value);
  });
  child.once('exit', () => ready.reject(new Error('the service ended before its database answered')));
  await ready.promise;
  service.startMs = Math.round(performance.now() - startedAt);
  return service;
}

function note(what: string, ms: number): void {
  measured.set(what, [...(measured.get(what) ?? []), ms]);
  expect(ms).toBeLessThan(maxStartMs);
}

async function moreRows(count: number): Promise<void> {
  const goal = acknowledged.size + count;
  await vi.waitFor(() => expect(acknowledged.size).toBeGreaterThanOrEqual(goal), { timeout: 60_000, interval: 5 });
}

async function kill9(child: ChildProcess): Promise<void> {
  const closed = once(child, 'close');
  child.kill('SIGKILL');
  await closed;
}

/**
 * Returns the ids of the processes whose working folder is below `place`: those of PostgreSQL and its guard. With `named`, returns
 * only processes whose command line contains this text.
 */
function processesIn(place: string, named = ''): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .filter((pid) => {
      try {
        return (
          readlinkSync(`/proc/${pid}/cwd`).startsWith(`${place}/`) &&
          readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(named)
        );
      } catch {
        return false;
      }
    })
    .map(Number);
}

/**
 * Returns the lines of postmaster.pid. The first line is the process id, the eighth line is the state. While the server writes the
 * file, lines can be missing.
 */
const pidFile = () => readFileSync(path.join(folder, 'cluster/postmaster.pid'), 'utf8').split('\n');
const postmaster = () => Number(pidFile()[0]);

async function expectNothingLost(): Promise<void> {
  const known = [...acknowledged];
  const found = await findEmbeddedPostgres(folder);
  const client = new pg.Client(found?.connection);
  await client.connect();
  const { rows } = await client.query<{ id: string }>('SELECT id FROM acknowledged');
  await client.end();
  const stored = new Set(rows.map(({ id }) => id));
  expect(known.filter((id) => !stored.has(id))).toEqual([]);
}

/** Kills a process, which may already have ended by itself. */
function killIfThere(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

describe('while rows are written, kill -9', () => {
  test('of the service loses no acknowledged row, ends the database of the service, and the next start is quick', async () => {
    note('first start on a fresh folder', (await startService()).startMs);
    for (let round = 1; round <= rounds; round += 1) {
      await moreRows(100);
      const [service] = services.splice(0);
      await kill9(service!.child);
      // In every second round, start the service while the old database is still stopping.
      if (round % 2 === 0) {
        await vi.waitFor(() => expect(processesIn(folder)).toEqual([]), { timeout: 60_000, interval: 50 });
        note('start after kill -9 of the service, its database gone', (await startService()).startMs);
      } else {
        note('start right after kill -9 of the service', (await startService()).startMs);
      }
      await expectNothingLost();
    }
  });

  test('of the guard makes the service start another guard, which stops the database when the service is killed', async () => {
    await giveDatabase(home);
    for (let round = 1; round <= rounds; round += 1) {
      const service = await startService();
      await moreRows(50);
      const [guard] = processesIn(folder, 'runyard-guard');
      process.kill(guard!, 'SIGKILL');
      await vi.waitFor(
        () => {
          const [next] = processesIn(folder, 'runyard-guard');
          expect(next).toBeDefined();
          expect(next).not.toBe(guard);
        },
        { timeout: 60_000 },
      );
      await moreRows(50);
      await expectNothingLost();
      await kill9(service.child);
      await vi.waitFor(() => expect(processesIn(folder)).toEqual([]), { timeout: 60_000 });
    }
  });

  test('of the service and its guard together loses no row, and the next start stops the database server that is left', async () => {
    await giveDatabase(home);
    await startService();
    for (let round = 1; round <= rounds; round += 1) {
      await moreRows(100);
      const [service] = services.splice(0);
      const leftover = postmaster();
      process.kill(processesIn(folder, 'runyard-guard')[0]!, 'SIGKILL');
      await kill9(service!.child);
      note('start after kill -9 of service and guard', (await startService()).startMs);
      expect(postmaster()).not.toBe(leftover);
      expect(processesIn(folder)).not.toContain(leftover);
      await expectNothingLost();
    }
  });

  test('of the postmaster makes the service start a new postmaster and continue to write', async () => {
    await giveDatabase(home);
    await startService();
    for (let round = 1; round <= rounds; round += 1) {
      await moreRows(100);
      const killed = postmaster();
      process.kill(killed, 'SIGKILL');
      const killedAt = performance.now();
      // After the kill of the postmaster, its backends may still finish statements and acknowledge rows. So wait for the new server
      // before counting further rows.
      const successorIsReady = () => expect([postmaster() === killed, pidFile()[7]?.trim()]).toEqual([false, 'ready']);
      await vi.waitFor(successorIsReady, { timeout: 60_000, interval: 20 });
      await moreRows(1);
      note('kill -9 of the postmaster until the next acknowledged row', Math.round(performance.now() - killedAt));
      await expectNothingLost();
    }
  });

  test('of everything at once loses no row, because the next start replays the log', async () => {
    await giveDatabase(home);
    await startService();
    for (let round = 1; round <= rounds; round += 1) {
      await moreRows(100);
      const [service] = services.splice(0);
      const all = processesIn(folder);
      const killed = kill9(service!.child);
      for (const pid of all) killIfThere(pid);
      await killed;
      note('start after kill -9 of everything', (await startService()).startMs);
      await expectNothingLost();
    }
  });
});

test('the database leaves no process and no socket folder when the service ends properly', async () => {
  await giveDatabase(home);
  const { child } = await startService();
  const found = await findEmbeddedPostgres(folder);
  child.stdin?.end();
  expect(await once(child, 'close')).toEqual([0, null]);
  // The guard ends a moment after its service.
  await vi.waitFor(() => expect(processesIn(folder)).toEqual([]), { timeout: 60_000 });
  expect(() => readdirSync(found!.connection.host)).toThrow(/ENOENT/);
  expect(await findEmbeddedPostgres(folder)).toBeUndefined();
});
