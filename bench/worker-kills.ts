/**
 * Kills the worker every few seconds while it executes runs. Measures how the runs end, whether a run starts twice, and the memory of a
 * supervisor.
 */
import { killWorkers } from '../test/support/killed-workers.ts';
import { startSystem } from '../test/support/system.ts';
import { median, report } from './report.ts';

const runs = Number(process.env.BENCH_RUNS ?? 200);
const seconds = 3;
const everyMs = 5000;

const system = await startSystem({ env: { RUNYARD_WORKER_SLOTS: '8' } });
try {
  const began = performance.now();
  const found = await killWorkers(system, { runs, seconds, everyMs });
  const took = Math.round((performance.now() - began) / 1000);
  process.stdout.write(`${found.failures.join('\n')}\n`);
  const states = Object.entries(found.states).map(([state, count]) => `${count} ${state}`);
  report(
    'Runs whose worker is killed',
    `${runs} runs of ${seconds} s on 8 slots. The worker is killed with kill -9 every ${everyMs / 1000} s and started again at once. If the worker is not connected to the service at this time, it is killed after it has connected. "Twice" counts the runs whose agent began the work more than once, or of which two sandboxes were seen.`,
    ['measured', 'result'],
    [
      ['kills of the worker', found.kills],
      ['agents at work at the moment of a kill, together', found.hit],
      ['ends', states.join(', ')],
      ['runs that started twice', found.twice.length],
      ['runs with a part of the conversation missing', found.incomplete.length],
      ['seconds', took],
      ['private memory of a supervisor, median MB', median(found.supervisorMb).toFixed(1)],
      ['… largest MB', Math.max(...found.supervisorMb).toFixed(1)],
    ],
  );
} finally {
  await system.stop();
}
