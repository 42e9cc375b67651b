/**
 * From a create to the agent at work on the prompt, with a warm pool and without, in turns on two systems; then the cost of trivial runs:
 * runs of a second, processor time of each program, memory of a sandbox that waits.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { findGvisor } from '../packages/worker/src/sandboxes/gvisor/find-gvisor.ts';
import { type System, startSystem } from '../test/support/system.ts';
import { percentile, report } from './report.ts';
import { memoryOfWaiting, type RunCosts, runCosts } from './run-costs.ts';

const count = Number(process.env.BENCH_RUNS ?? 60);
const gvisorCount = Math.ceil(count / 4);
/** The first runs warm the caches of the programs. */
const warmUp = 5;
/** Time for a run to end and for the pool to be filled again. */
const restMs = 600;
/** Waiting sandboxes whose memory is measured. */
const waitingAtOnce = 4;
const manyRuns = Number(process.env.BENCH_MANY_RUNS ?? 100);

interface Timeline {
  events: { event_type: string; occurred_at: string; payload?: { spawn_ms?: number } }[];
}

/** Milliseconds since the create. */
interface Samples {
  readonly spawned: number[];
  readonly atWork: number[];
  readonly inWorker: number[];
  readonly ended: number[];
}

const noSamples = (): Samples => ({ spawned: [], atWork: [], inWorker: [], ended: [] });

async function measureRun(system: System, samples: Samples): Promise<void> {
  const runId = await system.createRun('```sh\ntrue\n```');
  // Not asked while it is measured: the answers would take the processor that the agent starts on.
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

/** Runs each system `runs` times, in turns. */
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

const { warm, cold, costs, alone } = await withSystems([warmEnv, coldEnv], async (systems) => {
  const [warm = noSamples(), cold = noSamples()] = await measure(systems, count);
  const [system] = systems as [System];
  const alone = await memoryOfWaiting(system, 1);
  const costs: RunCosts[] = [];
  for (const each of systems) costs.push(await runCosts(each, manyRuns));
  return { warm, cold, costs, alone };
});
const severalEnv = { ...warmEnv, RUNYARD_WARM_SANDBOXES: String(waitingAtOnce) };
const waiting = await withSystems([severalEnv], ([system]) => memoryOfWaiting(system as System, waitingAtOnce));
const gvisor = (await findGvisor())
  ? await withSystems([{ RUNYARD_SANDBOX: 'gvisor' }], (systems) => measure(systems, gvisorCount))
  : [];

const numbers = (sample: number[] = []): string[] =>
  sample.length === 0 ? ['', ''] : [percentile(sample, 0.5).toFixed(0), percentile(sample, 0.99).toFixed(0)];
const latency = (name: string, sample: keyof Samples, goal: string) => [
  name,
  ...numbers(warm[sample]),
  goal,
  ...numbers(cold[sample]),
  ...numbers(gvisor[0]?.[sample]),
];
const cost = (name: string, of: keyof RunCosts, goal: string, digits = 0) => [
  name,
  costs[0]?.[of].toFixed(digits) ?? '',
  '',
  goal,
  costs[1]?.[of].toFixed(digits) ?? '',
  '',
  '',
  '',
];
report(
  'From create to work',
  `${count} runs of bubblewrap with a warm pool (\`RUNYARD_WARM_SANDBOXES=1\`) and without (0), in turns on two systems, then ${gvisorCount} runs of gVisor; embedded PostgreSQL, harness oz with \`runbook\`, one \`true\`; service, worker, database and client on the same cores. Milliseconds. Below, ${manyRuns} runs of the same kind, created at once: processor time of each program for one run, and runs of a second. The time of supervisors and agents includes that of the sandboxes which are made ready. The memory of a waiting sandbox is the sum of the proportional memory (PSS) of its processes and of its share of the supervisor, while nothing else runs.`,
  ['until', 'warm p50', 'warm p99', 'goal p50/p99', 'cold p50', 'cold p99', 'gVisor p50', 'gVisor p99'],
  [
    latency('sandbox spawned', 'spawned', ''),
    latency('… of which in the worker', 'inWorker', ''),
    latency('agent at work on the prompt', 'atWork', '40 / 120'),
    latency('run ended (one `true`)', 'ended', ''),
    cost('processor time of a run, ms', 'all', '120'),
    cost('… service', 'service', ''),
    cost('… worker', 'worker', ''),
    cost('… supervisor and agent', 'sandbox', ''),
    cost('… PostgreSQL', 'postgres', ''),
    cost('runs of a second', 'perSecond', '15', 1),
    [`memory of one of ${waitingAtOnce} waiting sandboxes, MB`, Math.round(waiting.all), '', '40', 0, '', '', ''],
    ['… agent', Math.round(waiting.agent), '', '', '', '', '', ''],
    ['… share of the supervisor', Math.round(waiting.supervisor), '', '', '', '', '', ''],
    ['memory of the only waiting sandbox, with its supervisor, MB', Math.round(alone.all), '', '', 0, '', '', ''],
  ],
);
