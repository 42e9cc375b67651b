/**
 * Measures live streams on one service process: the memory of each stream and the delay of an event. The streams are those of many runs,
 * those of a few runs, and those of the team.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { serviceNodeFlags } from '../packages/cli/src/supervise/stack.ts';
import type { Database } from '../packages/service/src/platform/store/database/database.ts';
import { silentLog } from '../packages/service/src/platform/store/database/log.ts';
import { openDatabase } from '../packages/service/src/platform/store/database/open-database.ts';
import { findEmbeddedPostgres } from '../packages/service/src/platform/store/embedded/start.ts';
import { appendTimelineEvent } from '../packages/service/src/runs/executions/timeline/timeline.ts';
import { startSystem } from '../test/support/system.ts';
import { cpuSecondsOf } from './processes.ts';
import { checkOpenFiles, probedEnvironment, probeMemory, startReaders } from './readers.ts';
import { percentile, report } from './report.ts';

const streams = Number(process.env.BENCH_STREAMS ?? 5_000);
const teamStreams = Number(process.env.BENCH_TEAM_STREAMS ?? 500);
const perSecond = Number(process.env.BENCH_EVENTS ?? 40);
const seconds = Number(process.env.BENCH_SECONDS ?? 20);

const openFiles = checkOpenFiles(streams);
/** Number of streams that are opened and closed before the first measurement. */
const warmUp = 200;
const kb = (bytes: number, count: number) => (bytes / count / 1024).toFixed(1);

/**
 * Writes `perSecond` events a second for `seconds` seconds, each event for another run. Each event contains the time at which this
 * function began to write it.
 */
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

/**
 * Opens the streams. Returns their readers, and table cells with the time to open them and the memory growth of the process `pid` per
 * stream. The caller must stop the readers.
 */
async function openMeasured(pid: number, port: number, key: string, paths: readonly string[]) {
  const readers = await startReaders();
  try {
    const before = await probeMemory(pid, memoryFile);
    const startedAt = performance.now();
    await readers.open({ port, key, paths });
    const openMs = performance.now() - startedAt;
    await delay(2_000);
    const after = await probeMemory(pid, memoryFile);
    const cells = [
      (openMs / 1000).toFixed(1),
      kb(after.rss - before.rss, paths.length),
      kb(after.heapUsed - before.heapUsed, paths.length),
      kb(after.sockets - before.sockets, paths.length),
    ];
    return { readers, cells };
  } catch (error) {
    await readers.stop();
    throw error;
  }
}

/** Measures the same streams on a bare server whose process has the service's flags. */
async function measureBare(): Promise<string[]> {
  const server = spawn(process.execPath, [...serviceNodeFlags, path.join(import.meta.dirname, 'bare-streams.ts')], {
    env: { PATH: process.env.PATH ?? '', ...probedEnvironment(memoryFile) },
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  try {
    const [line] = (await once(server.stdout, 'data')) as [Buffer];
    const open = async (count: number) => {
      const paths = Array.from({ length: count }, () => '/events');
      const { readers, cells } = await openMeasured(server.pid ?? 0, Number(String(line).trim()), 'none', paths);
      await readers.stop();
      return cells;
    };
    await open(warmUp);
    return [`node:http, ${streams}`, ...(await open(streams)), '', '', '', '', ''];
  } finally {
    server.stdin.end();
  }
}

const system = await startSystem({
  workers: [],
  env: { RUNYARD_LOG: 'warn', RUNYARD_EVENT_STREAMS: '1000000', ...probedEnvironment(memoryFile) },
});
const pid = system.service().pid ?? 0;

async function measure(
  name: string,
  db: Database,
  runs: readonly { id: string; execution: string }[],
  paths: readonly string[],
) {
  const port = Number(new URL(system.baseUrl()).port);
  const { readers, cells } = await openMeasured(pid, port, system.key, paths);
  try {
    await readers.takeReport();
    const cpu = cpuSecondsOf(pid);
    const events = await trickle(db, runs);
    await delay(1_000);
    const { open, lost, lags } = await readers.takeReport();
    const due = events * (name.startsWith('team') ? paths.length : Math.round(paths.length / runs.length));
    if (lost > 0 || open !== paths.length || lags.length !== due)
      process.stderr.write(`${name}: ${open} open, ${lost} lost, ${lags.length} received of ${due}\n`);
    return [
      name,
      ...cells,
      percentile(lags, 0.5).toFixed(1),
      percentile(lags, 0.99).toFixed(1),
      Math.max(0, ...lags.slice(0, 100_000)).toFixed(0),
      `${lags.length} of ${due}`,
      `${Math.round(((cpuSecondsOf(pid) - cpu) / (seconds + 1)) * 100)} %`,
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
    while (waiting.pop() !== undefined) await system.createRun('No worker takes this run.');
  };
  await Promise.all(Array.from({ length: 20 }, create));
  const runs = await db.query<{ id: string; execution: string }>(
    'SELECT id, current_execution_id AS execution FROM runs ORDER BY id',
  );
  const few = runs.slice(0, 50);
  const ofRun = ({ id }: { id: string }) => `/agent/runs/${id}/events`;
  const warm = runs.slice(0, warmUp);
  await measure('warm-up', db, warm, warm.map(ofRun));
  const rows = [
    await measureBare(),
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
    `One service process with the embedded PostgreSQL serves streams to readers on raw sockets in another process, all on the same cores. The load is ${perSecond} events a second for ${seconds} s, each for another run. Lag: the time from the beginning of the transaction that writes an event until a reader receives the event. RSS and heap: the growth of the server's process for one stream, after all streams were open and garbage was collected. Later rows of the same process can be smaller, because the process reuses memory. The first row is a bare server with the same Node flags as the service. In each server, 200 streams were opened and closed before its first row. Sockets: the kernel's memory for both ends of a stream. A process may have this number of open files here: ${openFiles}. Goal: < 20 KB, p99 < 250 ms.`,
    ['streams', 'opened in s', 'RSS KB', 'heap KB', 'sockets KB', 'lag p50 ms', 'p99 ms', 'max ms', 'received', 'CPU'],
    rows,
  );
} finally {
  await system.stop();
  rmSync(memoryFile, { force: true });
}
