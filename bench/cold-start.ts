/**
 * Measures the time from the start of the service process to its first answer, the time of the build of the dashboard, and the memory of
 * the programs at rest.
 */
import { execFileSync } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { killHard, startSystem } from '../test/support/system.ts';
import { pssBelow } from './processes.ts';
import { median, memoryOf, report } from './report.ts';
import { timed } from './turns.ts';

const rounds = Number(process.env.BENCH_ROUNDS ?? 5);
const restMs = Number(process.env.BENCH_REST_MS ?? 20_000);

const fresh: number[] = [];
const again: number[] = [];
const afterKill: number[] = [];
const build: number[] = [];
let memory: (string | number)[][] = [];

for (let round = 0; round < rounds; round += 1) {
  const dataDir = await mkdtemp(path.join(tmpdir(), 'runyard-bench-cold-start-'));
  // Node keeps compiled code in this folder. A service that `bin/runyard` starts also has this folder in its data folder.
  const env = { NODE_COMPILE_CACHE: path.join(dataDir, 'cache/node') };
  const started = performance.now();
  const system = await startSystem({ workers: [], dataDir, env });
  fresh.push(performance.now() - started);
  try {
    const stopped = new Promise((resolve) => system.service().once('exit', resolve));
    system.service().kill('SIGTERM');
    await stopped;
    again.push(await timed(() => system.startService()));
    await killHard(system.service());
    afterKill.push(await timed(() => system.startService()));
    if (round === rounds - 1) {
      system.startWorker();
      for (let n = 0; n < 10; n += 1) await system.untilEnded(await system.createRun('```sh\ntrue\n```'), 60_000);
      await delay(restMs);
      const service = system.service().pid ?? 0;
      const postgres = pssBelow(system.dataDir);
      const row = (name: string, pid: number, goal: string) => [name, memoryOf(pid).rssMb, memoryOf(pid).pssMb, goal];
      memory = [
        row('service', service, '150'),
        row('worker', system.worker().pid ?? 0, ''),
        ['PostgreSQL, all processes', '', postgres, ''],
      ];
    }
  } finally {
    await system.stop();
  }
}
// Write to another folder than `bin/runyard`, so that a running service keeps its dashboard.
const repository = path.resolve(import.meta.dirname, '..');
const dist = await mkdtemp(path.join(tmpdir(), 'runyard-bench-dashboard-'));
const vite = ['node_modules/vite/bin/vite.js', 'build', '--logLevel', 'error', '--emptyOutDir', '--outDir', dist];
for (let round = 0; round < rounds; round += 1)
  build.push(
    await timed(() =>
      execFileSync(process.execPath, [...vite, 'packages/dashboard'], { cwd: repository, stdio: 'ignore' }),
    ),
  );
await rm(dist, { recursive: true });
const ms = (sample: number[]) => [Math.round(median(sample)), Math.round(Math.max(...sample))];
report(
  'Cold start and memory at rest',
  `${rounds} rounds. The rows about starts are the time from the start of the service's process until the service listens, including the start of its embedded PostgreSQL. The service uses the compiled code of an earlier start. \`bin/runyard\` builds the dashboard before the first start, with the command that is measured here. The rows about memory were measured ${restMs / 1000} s after ten runs.`,
  ['what', 'median ms (or RSS MB)', 'max ms (or PSS MB)', 'goal'],
  [
    ['first start, empty data folder (ms)', ...ms(fresh), ''],
    ['start again (ms)', ...ms(again), ''],
    ['start after kill -9 (ms)', ...ms(afterKill), '2000'],
    ['build of the dashboard, once after an installation or upgrade (ms)', ...ms(build), '5000'],
    ...memory.map(([name, rss, pss, goal]) => [`${name} (MB)`, rss ?? '', pss ?? '', goal ?? '']),
  ],
);
