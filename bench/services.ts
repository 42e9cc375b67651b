/**
 * Measures the time until the agent of a run begins, with and without services of the environment: PostgreSQL and Redis. Each run gets a
 * prepared workspace, as the second and later runs of an environment do.
 */
import { startSystem } from '../test/support/system.ts';
import { median, percentile, report } from './report.ts';

const rounds = Number(process.env.BENCH_ROUNDS ?? 20);
const postgres = process.env.BENCH_POSTGRES ?? '/usr/lib/postgresql/15/bin';

const services = [
  {
    name: 'postgres',
    command: `exec ${postgres}/postgres -D ~/.cache/pg -c listen_addresses=127.0.0.1 -k /tmp`,
    ready: `${postgres}/pg_isready -q -h 127.0.0.1`,
    port: 5432,
  },
  { name: 'redis', command: 'exec redis-server --save "" --dir /tmp', port: 6379 },
];

const rows: (readonly [string, string, string, string])[] = [];
for (const kind of ['bubblewrap', 'gvisor']) {
  const system = await startSystem({ env: { RUNYARD_SANDBOX: kind } });
  try {
    const environmentOf = async (config: object) => {
      const body = { config: { name: 'Bench', ...config } };
      return (await system.call<{ uid: string }>('POST', '/agent/environments', body, 201)).uid;
    };
    /** Returns the milliseconds from the creation of a run until its agent begins. */
    const start = async (environment_id: string) => {
      const runId = await system.createRun('```sh\ntrue\n```', { config: { environment_id } });
      const run = await system.untilEnded(runId, 300_000);
      await system.until(runId, ({ is_sandbox_running }) => is_sandbox_running === false);
      if (run.state !== 'SUCCEEDED') throw new Error(JSON.stringify(run.status_message));
      return Date.parse(run.started_at ?? '') - Date.parse(run.created_at);
    };
    const initdb = `${postgres}/initdb -D ~/.cache/pg -A trust -U agent > /dev/null`;
    const environments = {
      without: await environmentOf({ setup_commands: ['true'] }),
      with: await environmentOf({ setup_commands: [initdb], services }),
    };
    const samples = { without: [] as number[], with: [] as number[] };
    for (let round = 0; round <= rounds; round += 1)
      for (const name of ['without', 'with'] as const) {
        const ms = await start(environments[name]);
        // The first run prepares the workspace.
        if (round > 0) samples[name].push(ms);
      }
    for (const name of ['without', 'with'] as const)
      rows.push([
        `${kind}, ${name} services`,
        median(samples[name]).toFixed(0),
        percentile(samples[name], 0.99).toFixed(0),
        name === 'with' ? (median(samples.with) - median(samples.without)).toFixed(0) : '',
      ]);
  } finally {
    await system.stop();
  }
}
report(
  'Start of services',
  `Each row is the time from the creation of a run until its agent begins, with a prepared workspace: ${rounds} rounds in turns. The services are PostgreSQL 15 and Redis. The added time includes the copy of the files that initdb made.`,
  ['sandbox', 'median ms', 'p99 ms', 'added by services, ms'],
  rows,
);
