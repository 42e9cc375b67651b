/**
 * Measures the time from a create until the agent works on the prompt, in turns on two systems: one with a pool of waiting sandboxes, and
 * one without. Then measures the cost of trivial runs: runs per second, processor time of each program, and memory of a waiting sandbox.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { findGvisor } from '../packages/worker/src/sandboxes/gvisor/find-gvisor.ts';
import { type System, startSystem } from '../test/support/system.ts';
import { withDockerSystem } from './docker-system.ts';
import { percentile, report } from './report.ts';
import { memoryOfRun, memoryOfWaiting, type RunCosts, runCosts } from './run-costs.ts';

const count = Number(process.env.BENCH_RUNS ?? 60);
/** Number of runs with gVisor, and of runs in containers. There are fewer of these runs, because they take longer. */
const slowerCount = Math.ceil(count / 4);
/** Number of runs before the measured runs. These first runs only fill the caches of the programs. */
const warmUp = 5;
/** Time for a run to end and for the pool to be filled again. */
const restMs = 600;
/** Number of waiting sandboxes whose memory is measured. */
const waitingAtOnce = 4;
const manyRuns = Number(process.env.BENCH_MANY_RUNS ?? 100);
const slowerManyRuns = Math.ceil(manyRuns / 4);

interface Timeline {
  events: { event_type: string; occurred_at: string; payload?: { spawn_ms?: number } }[];
}

/**
 * Each list has one number for each run: the milliseconds from the request that creates the run to the event. `inWorker` instead has the
 * milliseconds that the worker needs to start the sandbox.
 */
interface Samples {
  readonly spawned: number[];
  readonly atWork: number[];
  readonly inWorker: number[];
  readonly ended: number[];
}

const noSamples = (): Samples => ({ spawned: [], atWork: [], inWorker: [], ended: [] });

async function measureRun(system: System, samples: Samples): Promise<void> {
  const runId = await system.createRun('```sh\ntrue\n```');
  // Send no request during the measurement, because the service would answer it with processor time that the agent needs to start.
  await delay(restMs);
  await system.until(runId, (run) => run.is_sandbox_running === false);
  const { events } = await system.call<Timeline>('GET', `/agent/runs/${runId}/timeline`);
  const event = (type: string) => events.find((each) => each.event_type === type);
  const at = (type: string) => Date.parse(event(type)?.occurred_at ?? '');
  const created = at('oz_run_created');
  samples.spawned.push(at('worker_container_ready') - created);
  samples.atWork.push(at('agent_started') - created);
  samples.ended.push(at('oz_run_done') - created);
  samples.inWorker.push(event('worker_container_ready')?.payload?.spawn_ms ?? Number.NaN);
}

/** Creates `runs` runs on each system, in turns. */
async function measure(systems: readonly System[], runs: number): Promise<Samples[]> {
  const samples = systems.map(noSamples);
  for (let n = 0; n < runs + warmUp; n += 1)
    for (const [index, system] of systems.entries())
      await measureRun(system, n < warmUp ? noSamples() : (samples[index] ?? noSamples()));
  return samples;
}

async function withSystems<T>(envs: readonly Record<string, string>[], work: (systems: System[]) => Promise<T>) {
  const systems: System[] = [];
  try {
    for (const env of envs) systems.push(await startSystem({ env }));
    return await work(systems);
  } finally {
    for (const system of systems) await system.stop();
  }
}

const warmEnv = { RUNYARD_SANDBOX: 'bubblewrap', RUNYARD_WARM_SANDBOXES: '1' };
const coldEnv = { RUNYARD_SANDBOX: 'bubblewrap', RUNYARD_WARM_SANDBOXES: '0' };

/** Results of one kind of sandbox. */
interface Column {
  readonly samples: Samples;
  readonly costs: RunCosts;
  /** Memory in MB of a run in progress. */
  readonly memory: number;
}

const { warm, cold, alone } = await withSystems([warmEnv, coldEnv], async (systems) => {
  const samples = await measure(systems, count);
  const [system] = systems as [System];
  const alone = await memoryOfWaiting(system, 1);
  const columns: Column[] = [];
  for (const [index, each] of systems.entries())
    columns.push({
      samples: samples[index] ?? noSamples(),
      memory: await memoryOfRun(each),
      costs: await runCosts(each, manyRuns),
    });
  const [warm, cold] = columns;
  return { warm, cold, alone };
});
const severalEnv = { ...warmEnv, RUNYARD_WARM_SANDBOXES: String(waitingAtOnce) };
const waiting = await withSystems([severalEnv], ([system]) => memoryOfWaiting(system as System, waitingAtOnce));

/**
 * Measures gVisor or containers, with fewer runs, because these sandboxes are slower. `holders` returns the processes that hold the
 * containers.
 */
async function measureSlower(system: System, holders?: () => number[]): Promise<Column> {
  const [samples = noSamples()] = await measure([system], slowerCount);
  const memory = await memoryOfRun(system, holders);
  return { samples, memory, costs: await runCosts(system, slowerManyRuns, holders !== undefined) };
}

const gvisor = (await findGvisor())
  ? await withSystems([{ RUNYARD_SANDBOX: 'gvisor' }], ([system]) => measureSlower(system as System))
  : 'runsc is not installed';
const docker = await withDockerSystem(measureSlower);

const columns = [warm, cold, gvisor, docker].map((each) => (typeof each === 'string' ? undefined : each));
const goalAfterWarm = <T>(cells: readonly T[], goal: T): T[] => cells.toSpliced(2, 0, goal);
const latency = (name: string, of: keyof Samples, goal: string) => {
  const cells = columns.flatMap((column) =>
    column ? [0.5, 0.99].map((share) => percentile(column.samples[of], share).toFixed(0)) : ['', ''],
  );
  return [name, ...goalAfterWarm(cells, goal)];
};
/** Returns a row with one number for each kind of sandbox. */
const single = (name: string, goal: string, of: (column: Column) => number, digits = 0) => {
  const cells = columns.flatMap((column) => [column ? of(column).toFixed(digits) : '', '']);
  return [name, ...goalAfterWarm(cells, goal)];
};
const cost = (name: string, of: keyof RunCosts, goal = '', digits = 0) =>
  single(name, goal, ({ costs }) => costs[of], digits);
/** Returns a row about waiting sandboxes, which exist only with bubblewrap. */
const ofWaiting = (name: string, mb: number, goal = '', cold: string | number = '') => {
  const cells = [Math.round(mb), '', cold, ...Array<string>(5).fill('')];
  return [name, ...goalAfterWarm(cells, goal)];
};
const unmeasured = Object.entries({ gVisor: gvisor, docker }).flatMap(([kind, result]) =>
  typeof result === 'string' ? [` Sandboxes of ${kind} could not be measured: ${result}.`] : [],
);
report(
  'From create to work',
  `${count} runs with bubblewrap, with a warm pool (\`RUNYARD_WARM_SANDBOXES=1\`) and without (0), in turns on two systems. Then ${slowerCount} runs with gVisor and ${slowerCount} in containers of an engine that the benchmark starts (\`RUNYARD_SANDBOX=docker\`, runtime runc, an image with busybox, storage driver vfs). All runs use the embedded PostgreSQL and the harness oz with \`runbook\`, one \`true\`. Service, worker, database and client share the cores. Times are in milliseconds. In the lower part of the table, there are ${manyRuns} such runs (gVisor and docker: ${slowerManyRuns}), created at once. This part shows the processor time of each program for one run, and the runs per second. Machines differ, so the processor time of a Node that does nothing was measured before and after these runs. The goals were set on a machine where this time is 36 ms. The time of supervisors and agents includes the preparation of waiting sandboxes. With docker, this row is the time of the whole machine minus the time of the other programs and of the client, so it includes the engine. The memory of a run at work is the proportional memory (PSS) that a sleeping run adds. It does not include programs of the engine that all containers share. The memory of a waiting sandbox is the proportional memory of its processes and its share of the supervisor, while nothing else runs.${unmeasured.join('')}`,
  [
    'until',
    ...goalAfterWarm(
      ['warm', 'cold', 'gVisor', 'docker'].flatMap((kind) => [`${kind} p50`, `${kind} p99`]),
      'goal p50/p99',
    ),
  ],
  [
    latency('sandbox spawned', 'spawned', ''),
    latency('… of which in the worker', 'inWorker', ''),
    latency('agent at work on the prompt', 'atWork', '40 / 120'),
    latency('run ended (one `true`)', 'ended', ''),
    cost('processor time of a run, ms', 'all', '80'),
    cost('… service', 'service'),
    cost('… worker', 'worker'),
    cost('… supervisor and agent', 'sandbox'),
    cost('… … of which the supervisor itself', 'supervisor'),
    cost('… PostgreSQL', 'postgres'),
    cost('processor time of `node -e 0`, ms', 'bareNode'),
    single('a run, in times of `node -e 0`', '2.2', ({ costs }) => costs.all / costs.bareNode, 1),
    cost('runs of a second', 'perSecond', '20', 1),
    cost('first create until all of these runs are at work, s', 'allAtWork', '5', 1),
    single('memory of a run at work, MB', '', ({ memory }) => memory),
    ofWaiting(`memory of one of ${waitingAtOnce} waiting sandboxes, MB`, waiting.all, '40', 0),
    ofWaiting('… agent', waiting.agent),
    ofWaiting('… share of the supervisor', waiting.supervisor),
    ofWaiting('memory of the only waiting sandbox, with its supervisor, MB', alone.all, '', 0),
  ],
);
