/** From a create to the spawned sandbox, and to the agent at work on the prompt: by the database's clock, one run at a time. */
import { setTimeout as delay } from 'node:timers/promises';
import { startSystem } from '../test/support/system.ts';
import { percentile, report } from './report.ts';

const count = Number(process.env.BENCH_RUNS ?? 100);
const restMs = 600;

interface Timeline {
  events: { event_type: string; occurred_at: string; payload?: { spawn_ms?: number } }[];
}

const system = await startSystem();
try {
  const spawned: number[] = [];
  const atWork: number[] = [];
  const inWorker: number[] = [];
  const ended: number[] = [];
  for (let n = 0; n < count + 5; n += 1) {
    const runId = await system.createRun('```sh\ntrue\n```');
    // Not asked while it is measured: the answers would take the processor that the agent starts on.
    await delay(restMs);
    await system.until(runId, (run) => run.is_sandbox_running === false);
    // The first runs warm the caches of both programs.
    if (n < 5) continue;
    const { events } = await system.call<Timeline>('GET', `/agent/runs/${runId}/timeline`);
    const at = (type: string) => Date.parse(events.find((event) => event.event_type === type)?.occurred_at ?? '');
    const created = at('oz_run_created');
    spawned.push(at('worker_container_ready') - created);
    atWork.push(at('agent_started') - created);
    ended.push(at('oz_run_done') - created);
    inWorker.push(
      events.find((event) => event.event_type === 'worker_container_ready')?.payload?.spawn_ms ?? Number.NaN,
    );
  }
  const row = (name: string, sample: number[], goal: string) => [
    name,
    percentile(sample, 0.5).toFixed(0),
    percentile(sample, 0.99).toFixed(0),
    Math.max(...sample).toFixed(0),
    goal,
  ];
  report(
    'From create to work',
    `${count} runs, one after the other, bubblewrap, embedded PostgreSQL, harness oz with \`runbook\`; service, worker, database and client on the same cores. Milliseconds.`,
    ['until', 'p50', 'p99', 'max', 'goal p50/p99'],
    [
      row('sandbox spawned', spawned, '40 / 120'),
      row('… of which in the worker', inWorker, ''),
      row('agent at work on the prompt', atWork, '200 / 400'),
      row('run ended (one `true`)', ended, ''),
    ],
  );
} finally {
  await system.stop();
}
