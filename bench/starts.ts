/**
 * Measures how much processor time and wall time all programs need to start, as ratios to a start of Node alone. With BENCH_BEFORE, also
 * measures the programs of another checkout.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { serviceNodeFlags } from '../packages/cli/src/supervise/stack.ts';
import { headStartVariable } from '../test/support/head-start.ts';
import { programFile } from '../test/support/programs.ts';
import { cpuSecondsOf } from './processes.ts';
import { run } from './programs.ts';
import { median, report } from './report.ts';

const rounds = Number(process.env.BENCH_ROUNDS ?? 7);
const roots = [
  path.resolve(import.meta.dirname, '..'),
  ...(process.env.BENCH_BEFORE ? [process.env.BENCH_BEFORE] : []),
];
const folder = await mkdtemp(path.join(tmpdir(), 'runyard-bench-starts-'));
// The measured programs do not use this folder. It is only for the bundles of the tests' helpers.
process.env[headStartVariable] = folder;
const key = 'ryk_the-key-of-the-benchmark-0123456789';

/** Milliseconds. */
interface Cost {
  readonly cpu: number;
  readonly wall: number;
}

/** Stands in for the service: gives the client commands an empty list of runs. */
const service = http.createServer((_, response) => {
  response.setHeader('content-type', 'application/json');
  response.end('{"runs":[],"page_info":{"has_next_page":false}}');
});
await new Promise<void>((resolve) => service.listen(0, '127.0.0.1', resolve));
const origin = `http://127.0.0.1:${(service.address() as AddressInfo).port}`;

/** Runs Node with these arguments to its end. The shell command `times` prints the processor time of its children, as `0m0.04s`. */
async function toEnd(args: readonly string[], env: Record<string, string> = {}): Promise<Cost> {
  const started = performance.now();
  const output = await run({
    command: 'sh',
    args: ['-c', '"$@" >/dev/null 2>&1; times', 'sh', process.execPath, ...args],
    env,
  });
  const wall = performance.now() - started;
  const ofChildren = output.trim().split('\n').at(-1) ?? '';
  const seconds = [...ofChildren.matchAll(/(\d+)m([\d.]+)s/g)].map(([, min, s]) => Number(min) * 60 + Number(s));
  return { cpu: seconds.reduce((sum, each) => sum + each, 0) * 1000, wall };
}

/** Returns the processor time of a process and of all its descendants. */
function cpuOfTree(pid: number): number {
  const parents = readdirSync('/proc').flatMap((name): [number, number][] => {
    try {
      return [[Number(name), Number(readFileSync(`/proc/${name}/stat`, 'utf8').split(') ')[1]?.split(' ')[1])]];
    } catch {
      return [];
    }
  });
  const below = (each: number): number[] => [
    each,
    ...parents.filter(([, parent]) => parent === each).flatMap(([child]) => below(child)),
  ];
  const cpuOf = (each: number): number => {
    try {
      return cpuSecondsOf(each) * 1000;
    } catch {
      // It ended meanwhile.
      return 0;
    }
  };
  return below(pid).reduce((sum, each) => sum + cpuOf(each), 0);
}

const running = new Set<ChildProcess>();

interface Started extends Cost {
  stop(): Promise<void>;
}

/** Starts Node with these arguments. `isReady` gets the output of this process and returns true when the program is ready. */
async function toReady(
  args: readonly string[],
  env: Record<string, string>,
  isReady: (shown: string) => boolean,
): Promise<Started> {
  const started = performance.now();
  const child: ChildProcess = spawn(process.execPath, args, {
    env: { PATH: process.env.PATH ?? '', HOME: process.env.HOME ?? '/', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const exited = once(child, 'exit').then(() => running.delete(child));
  running.add(child);
  let shown = '';
  for (const stream of [child.stdout, child.stderr]) stream?.on('data', (piece: Buffer) => (shown += piece.toString()));
  while (!isReady(shown)) {
    if (child.exitCode !== null) throw new Error(`${args.join(' ')} ended: ${shown.slice(-1000)}`);
    await delay(10);
  }
  const cost = { cpu: cpuOfTree(child.pid ?? 0), wall: performance.now() - started };
  return {
    ...cost,
    stop: async () => {
      child.kill('SIGTERM');
      await exited;
    },
  };
}

/** Measures each start of a checkout once. */
async function measure(root: string, name: string): Promise<Record<string, Cost>> {
  const main = (program: string) => path.join(root, `packages/${program}/src/main.ts`);
  const dataDir = path.join(folder, name);
  const common = {
    NODE_COMPILE_CACHE: path.join(folder, 'compiled'),
    RUNYARD_DATA_DIR: dataDir,
    RUNYARD_API_KEY: key,
    RUNYARD_ADOPT_SECONDS: '0',
  };
  const ofClient = { ...common, RUNYARD_BASE_URL: origin };
  const found: Record<string, Cost> = {
    '`node -e 0`': await toEnd(['-e', '0']),
    '`runyard version`': await toEnd([main('cli'), '--version'], common),
    '`runyard --help`': await toEnd([main('cli'), '--help'], common),
    '`runyard runs`': await toEnd([main('cli'), 'runs'], ofClient),
  };
  const vitest = path.join(root, 'node_modules/vitest/vitest.mjs');
  const file = 'packages/service/src/edges/http/api/audit.test.ts';
  const oneTest = ['run', '--root', root, file, '-t', 'is not written for a change that was refused'];
  found['`npm run t` with one test of the service (goal: 6 s)'] = await toEnd([vitest, ...oneTest], common);
  const env = { ...common, RUNYARD_PORT: '0', RUNYARD_BOOTSTRAP_KEY: key };
  const startBoth = async (service: string, worker: string): Promise<[Cost, Cost]> => {
    const file = path.join(dataDir, 'service.json');
    await rm(file, { force: true });
    const first = await toReady([...serviceNodeFlags, service], env, () => existsSync(file));
    const { base_url: url } = JSON.parse(readFileSync(file, 'utf8'));
    const ofWorker = { ...common, RUNYARD_BASE_URL: url, RUNYARD_LOG: 'info' };
    const second = await toReady([worker], ofWorker, (shown) => shown.includes('connected to the service'));
    await second.stop();
    await first.stop();
    return [first, second];
  };
  const [service, worker] = ['service, until it is ready (with its database)', 'worker, until it is connected'];
  [found[service], found[worker]] = await startBoth(main('service'), main('worker'));
  if (root === roots[0])
    [found[`${service}, as tests start it`], found[`${worker}, as tests start it`]] = await startBoth(
      await programFile('service'),
      await programFile('worker'),
    );
  const up = await toReady([main('cli'), 'up'], env, (shown) => shown.includes('Runyard is running'));
  found['`runyard up`, until it says so (all programs)'] = up;
  await up.stop();
  return found;
}

const samples = roots.map(() => [] as Record<string, Cost>[]);
try {
  for (let round = -1; round < rounds; round += 1) {
    for (const [index, root] of roots.entries()) {
      const found = await measure(root, String(index));
      if (round >= 0) samples[index]?.push(found);
    }
  }
} finally {
  for (const child of running) child.kill('SIGTERM');
  await Promise.all([...running].map((child) => once(child, 'exit')));
  service.close();
  await rm(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 200 });
}

const bare = '`node -e 0`';
const ofBare = (what: keyof Cost) => median(samples.flat().map((sample) => sample[bare]?.[what] ?? Number.NaN));
const cells = (sample: readonly Record<string, Cost>[], name: string) =>
  (['cpu', 'wall'] as const).flatMap((what) => {
    const middle = median(sample.map((each) => each[name]?.[what] ?? Number.NaN));
    if (Number.isNaN(middle)) return ['-', '-'];
    return [middle.toFixed(0), (middle / ofBare(what)).toFixed(1)];
  });
const columns = ['processor ms', '× Node', 'wall ms', '× Node'];
const before = roots.length > 1;
report(
  'Starts of the programs',
  `Medians of ${rounds} rounds in turns. The programs use the compiled code and the data folder of an earlier start. × Node: the ratio to \`node -e 0\` of the same rounds.${before ? ' Before: another checkout, measured in the same rounds.' : ''}`,
  ['start', ...columns, ...(before ? columns.map((column) => `before: ${column}`) : [])],
  Object.keys(samples[0]?.[0] ?? {}).map((name) => [name, ...samples.flatMap((sample) => cells(sample, name))]),
);
