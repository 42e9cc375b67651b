/**
 * Measures the gain and cost of the service's Node flags: start, memory, and the processor time of a create, with and without the flags in
 * turns.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { serviceNodeFlags } from '../packages/cli/src/supervise/stack.ts';
import { type System, startSystem } from '../test/support/system.ts';
import { loadWithCreates } from './create-load.ts';
import { cpuSecondsOf } from './processes.ts';
import { checkOpenFiles, startReaders } from './readers.ts';
import { median, memoryOf, report } from './report.ts';
import { inTurns, timed } from './turns.ts';

const starts = Number(process.env.BENCH_STARTS ?? 3);
const rounds = Number(process.env.BENCH_ROUNDS ?? 12);
const streams = Number(process.env.BENCH_STREAMS ?? 5_000);
const load = { callers: 32, seconds: Number(process.env.BENCH_SECONDS ?? 2) };
const restMs = 10_000;
checkOpenFiles(streams);

const variants: Readonly<Record<string, readonly string[]>> = {
  'none of ours': [],
  '--max-semi-space-size=2': ['--max-semi-space-size=2'],
  '--max-semi-space-size=4': ['--max-semi-space-size=4'],
  '--max-semi-space-size=8': ['--max-semi-space-size=8'],
  '--max-semi-space-size=8 --heap-growing-percent=100': ['--max-semi-space-size=8', '--heap-growing-percent=100'],
  '--max-semi-space-size=4 --heap-growing-percent=50': ['--max-semi-space-size=4', '--heap-growing-percent=50'],
};

const pidOf = (system: System): number => system.service().pid ?? 0;
const rssOf = (system: System): number => memoryOf(pidOf(system)).rssMb;

async function restart(system: System): Promise<void> {
  const stopped = new Promise((resolve) => system.service().once('exit', resolve));
  system.service().kill('SIGTERM');
  await stopped;
  await system.startService();
}

/** Opens `streams` streams, a hundred for each run. Returns the resident megabytes of the service. */
async function withStreams(system: System): Promise<number> {
  const runs = await Promise.all(
    Array.from({ length: streams / 100 }, () => system.createRun('No worker takes this run.')),
  );
  const readers = await startReaders();
  try {
    const paths = Array.from({ length: streams }, (_, index) => `/agent/runs/${runs[index % runs.length]}/events`);
    await readers.open({ port: Number(new URL(system.baseUrl()).port), key: system.key, paths });
    await delay(restMs);
    return rssOf(system);
  } finally {
    await readers.stop();
  }
}

/** One number for each entry of `variants`, which is a combination of flags. */
type Each = Record<string, number>;
const systems: Record<string, System> = {};
const each = async (measure: (system: System) => number | Promise<number>): Promise<Each> => {
  const found: Each = {};
  for (const [name, system] of Object.entries(systems)) found[name] = await measure(system);
  return found;
};
const ways = (measure: (system: System, name: string) => Promise<number>) =>
  Object.fromEntries(Object.entries(systems).map(([name, system]) => [name, () => measure(system, name)]));

try {
  for (const [name, flags] of Object.entries(variants))
    systems[name] = await startSystem({
      workers: [],
      serviceNodeFlags: flags,
      env: { RUNYARD_LOG: 'warn', RUNYARD_EVENT_STREAMS: '1000000' },
    });
  const started = await inTurns(
    ways((system) => timed(() => restart(system))),
    starts,
    1,
  );
  await delay(restMs);
  const atRest = await each(rssOf);

  const cpu: Each = {};
  const count: Each = {};
  const perSecond = await inTurns(
    ways(async (system, name) => {
      const before = cpuSecondsOf(pidOf(system));
      const round = await loadWithCreates(
        `${system.baseUrl()}/api/v1/agent/runs`,
        { authorization: `Bearer ${system.key}` },
        load,
      );
      cpu[name] = (cpu[name] ?? 0) + cpuSecondsOf(pidOf(system)) - before;
      count[name] = (count[name] ?? 0) + round.perSecond * load.seconds;
      return round.perSecond;
    }),
    rounds,
  );
  const afterLoad = await each(rssOf);
  await each(async (system) => timed(() => restart(system)));
  const full = await each(withStreams);

  const [first = ''] = Object.keys(variants);
  const ratios = (name: string) =>
    (perSecond[name] ?? []).map((value, index) => value / (perSecond[first]?.[index] ?? Number.NaN));
  report(
    "The service's flags of Node",
    `Each row is a service in a separate process with a separate embedded PostgreSQL; ${starts} starts, and ${rounds} rounds of ${load.seconds} s of creates by ${load.callers} callers, in turns. Creates: ratio to the first row in the same round (median). Memory: resident megabytes of the service after ${restMs / 1000} s of rest and right after the creates, and of a newly started service with ${streams} live streams. Runyard starts the service with these flags: ${serviceNodeFlags.join(' ')}.`,
    ['flags', 'start ms', 'at rest MB', 'creates', 'CPU ms of a create', 'after creates MB', `${streams} streams MB`],
    Object.keys(variants).map((name) => [
      name,
      Math.round(median(started[name] ?? [])),
      atRest[name] ?? '',
      median(ratios(name)).toFixed(2),
      (((cpu[name] ?? 0) * 1000) / (count[name] ?? 1)).toFixed(3),
      afterLoad[name] ?? '',
      full[name] ?? '',
    ]),
  );
} finally {
  for (const system of Object.values(systems)) await system.stop();
}
