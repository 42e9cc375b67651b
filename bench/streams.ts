/** Live streams on one service process: memory for each, and how late an event is, over many runs, few runs and the team. */
import { spawn } from 'node:child_process';
import { readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as delay } from 'node:timers/promises';
import { appendTimelineEvent } from '../packages/service/src/runs/append.ts';
import { type Database, openDatabase } from '../packages/service/src/store/database.ts';
import { findEmbeddedPostgres } from '../packages/service/src/store/embedded/start.ts';
import { silentLog } from '../packages/service/src/store/log.ts';
import { eventually, startSystem } from '../test/support/system.ts';
import { percentile, report } from './report.ts';

const streams = Number(process.env.BENCH_STREAMS ?? 5_000);
const teamStreams = Number(process.env.BENCH_TEAM_STREAMS ?? 500);
const perSecond = Number(process.env.BENCH_EVENTS ?? 40);
const seconds = Number(process.env.BENCH_SECONDS ?? 20);

const openFiles = Number(/^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8'))?.[1]);
if (openFiles < streams + 500) {
  throw new Error(
    `${streams} streams need as many open files in each process, the limit is ${openFiles}: ulimit -n ${streams + 500}`,
  );
}

const clockTicks = 100;
const kb = (bytes: number, count: number) => (bytes / count / 1024).toFixed(1);

/** Seconds of processor time that the process has taken. */
function cpuOf(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? [];
  return (Number(fields[11]) + Number(fields[12])) / clockTicks;
}

/** Pages that the kernel holds for TCP sockets, of this network namespace, in bytes. */
const socketMemory = () => Number(/^TCP: .* mem (\d+)/m.exec(readFileSync('/proc/net/sockstat', 'utf8'))?.[1]) * 4096;

async function startReaders() {
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
  const stop = async () => {
    const gone = new Promise((resolve) => child.once('exit', resolve));
    child.stdin.end();
    await gone;
  };
  return { ask, stop };
}

/** So many events a second, each of another run, for `seconds`. The time in an event is that before its transaction. */
async function trickle(db: Database, runs: readonly { id: string; execution: string }[]): Promise<number> {
  const started = performance.now();
  let count = 0;
  for (; performance.now() - started < seconds * 1000; count += 1) {
    const run = runs[(count * 7) % runs.length];
    if (!run) break;
    const sent = performance.timeOrigin + performance.now();
    await appendTimelineEvent(db, {
      runId: run.id,
      executionId: run.execution,
      type: 'setup_step_started',
      payload: { sent, name: 'An event of usual length, as the setup of a run has them' },
    });
    await delay(Math.max(0, started + ((count + 1) * 1000) / perSecond - performance.now()));
  }
  return count;
}

const memoryFile = path.join(tmpdir(), `runyard-bench-memory-${process.pid}`);
const system = await startSystem({
  workers: [],
  env: {
    RUNYARD_LOG: 'warn',
    NODE_OPTIONS: `--import=${path.join(import.meta.dirname, 'memory-probe.ts')}`,
    BENCH_MEMORY_FILE: memoryFile,
  },
});
const pid = system.service().pid ?? 0;

async function memory(): Promise<{ heapUsed: number; rss: number; sockets: number }> {
  rmSync(memoryFile, { force: true });
  process.kill(pid, 'SIGUSR2');
  const text = await eventually('the memory of the service', async () => {
    try {
      return readFileSync(memoryFile, 'utf8');
    } catch {
      return null;
    }
  });
  return { ...JSON.parse(text), sockets: socketMemory() };
}

async function measure(
  name: string,
  db: Database,
  runs: readonly { id: string; execution: string }[],
  paths: readonly string[],
) {
  const readers = await startReaders();
  try {
    const before = await memory();
    const port = Number(new URL(system.baseUrl()).port);
    const startedAt = performance.now();
    await readers.ask({ open: { port, key: system.key, paths: paths.map((each) => `/api/v1${each}`) } });
    const openMs = performance.now() - startedAt;
    await delay(2_000);
    const after = await memory();
    await readers.ask({ report: true });
    const cpu = cpuOf(pid);
    const events = await trickle(db, runs);
    await delay(1_000);
    const { open, lost, lags } = await readers.ask({ report: true });
    const due = events * (name.startsWith('team') ? paths.length : Math.round(paths.length / runs.length));
    if (lost > 0 || open !== paths.length || lags.length !== due)
      process.stderr.write(`${name}: ${open} open, ${lost} lost, ${lags.length} received of ${due}\n`);
    return [
      name,
      (openMs / 1000).toFixed(1),
      kb(after.rss - before.rss, paths.length),
      kb(after.heapUsed - before.heapUsed, paths.length),
      kb(after.sockets - before.sockets, paths.length),
      percentile(lags, 0.5).toFixed(1),
      percentile(lags, 0.99).toFixed(1),
      Math.max(0, ...lags.slice(0, 100_000)).toFixed(0),
      `${lags.length} of ${due}`,
      `${Math.round(((cpuOf(pid) - cpu) / (seconds + 1)) * 100)} %`,
    ];
  } finally {
    await readers.stop();
    await delay(2_000);
  }
}

try {
  const embedded = await findEmbeddedPostgres(path.join(system.dataDir, 'postgres'));
  if (!embedded) throw new Error('the embedded PostgreSQL does not run');
  const db = await openDatabase({ address: { connectionString: embedded.url }, maxConnections: 2, log: silentLog });
  const waiting = Array.from({ length: streams }, (_, index) => index);
  const create = async () => {
    while (waiting.pop() !== undefined) await system.createRun('Nothing takes this run.');
  };
  await Promise.all(Array.from({ length: 20 }, create));
  const runs = await db.query<{ id: string; execution: string }>(
    'SELECT id, current_execution_id AS execution FROM runs ORDER BY id',
  );
  const few = runs.slice(0, 50);
  const ofRun = ({ id }: { id: string }) => `/agent/runs/${id}/events`;
  const warm = runs.slice(0, 200);
  await measure('warm-up', db, warm, warm.map(ofRun));
  const rows = [
    await measure(`${streams} of ${streams} runs`, db, runs, runs.map(ofRun)),
    await measure(
      `${streams} of ${few.length} runs`,
      db,
      few,
      runs.map((_, index) => ofRun(few[index % few.length] ?? { id: '' })),
    ),
    await measure(
      `team, ${teamStreams}`,
      db,
      runs,
      Array.from({ length: teamStreams }, () => '/agent/runs/events'),
    ),
  ];
  await db.close();
  report(
    'Live streams',
    `One service process, embedded PostgreSQL, readers on raw sockets in a process of their own, all on the same cores. ${perSecond} events a second for ${seconds} s, each of another run. Lag: from before the transaction that writes the event to its receipt. KB for each stream: what the process grew by when all had opened and garbage was collected; a second run of the same memory grows less. Sockets: the kernel's pages, both ends. Open files: the limit here is ${openFiles}. Goal: < 20 KB, p99 < 250 ms.`,
    ['streams', 'opened in s', 'RSS KB', 'heap KB', 'sockets KB', 'lag p50 ms', 'p99 ms', 'max ms', 'received', 'CPU'],
    rows,
  );
} finally {
  await system.stop();
  rmSync(memoryFile, { force: true });
}
