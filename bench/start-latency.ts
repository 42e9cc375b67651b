/** From a create to the spawned sandbox, and to the agent at work on the prompt: by the database's clock, one run at a time. */
import { setTimeout as delay } from 'node:timers/promises';
import { findGvisor } from '../packages/worker/src/sandboxes/gvisor/find-gvisor.ts';
import { startSystem } from '../test/support/system.ts';
import { percentile, report } from './report.ts';

const count = Number(process.env.BENCH_RUNS ?? 100);
const restMs = 600;

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

async function measure(sandbox: 'bubblewrap' | 'gvisor'): Promise<Samples> {
  const system = await startSystem({ env: { RUNYARD_SANDBOX: sandbox } });
  const samples: Samples = { spawned: [], atWork: [], inWorker: [], ended: [] };
  try {
    for (let n = 0; n < count + 5; n += 1) {
      const runId = await system.createRun('```sh\ntrue\n```');
      // Not asked while it is measured: the answers would take the processor that the agent starts on.
      await delay(restMs);
      await system.until(runId, (run) => run.is_sandbox_running === false);
      // The first runs warm the caches of both programs.
      if (n < 5) continue;
      const { events } = await system.call<Timeline>('GET', `/agent/runs/${runId}/timeline`);
      const event = (type: string) => events.find((each) => each.event_type === type);
      const at = (type: string) => Date.parse(event(type)?.occurred_at ?? '');
      const created = at('oz_run_created');
      samples.spawned.push(at('worker_container_ready') - created);
      samples.atWork.push(at('agent_started') - created);
      samples.ended.push(at('oz_run_done') - created);
      samples.inWorker.push(event('worker_container_ready')?.payload?.spawn_ms ?? Number.NaN);
    }
    return samples;
  } finally {
    await system.stop();
  }
}

const numbers = (sample: number[]): string[] => [
  percentile(sample, 0.5).toFixed(0),
  percentile(sample, 0.99).toFixed(0),
  Math.max(...sample).toFixed(0),
];
const bubblewrap = await measure('bubblewrap');
const gvisor = (await findGvisor()) && (await measure('gvisor'));
const row = (name: string, sample: keyof Samples, goal: string) => [
  name,
  ...numbers(bubblewrap[sample]),
  goal,
  ...(gvisor === undefined ? ['', ''] : numbers(gvisor[sample]).slice(0, 2)),
];
report(
  'From create to work',
  `${count} runs of each backend, one after the other, embedded PostgreSQL, harness oz with \`runbook\`; service, worker, database and client on the same cores. Milliseconds.`,
  ['until', 'p50', 'p99', 'max', 'goal p50/p99', 'gVisor p50', 'gVisor p99'],
  [
    row('sandbox spawned', 'spawned', '40 / 120'),
    row('… of which in the worker', 'inWorker', ''),
    row('agent at work on the prompt', 'atWork', '200 / 400'),
    row('run ended (one `true`)', 'ended', ''),
  ],
);
