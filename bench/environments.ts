/**
 * Measures the preparation of an environment with a repository of 10,000 files in three cases: the first preparation, a preparation with
 * the mirror of the repository, and a run that gets a prepared workspace.
 */
import { createHash } from 'node:crypto';
import { startFakeGitHost } from '../test/fakes/git-host.ts';
import { startSystem } from '../test/support/system.ts';
import { median, percentile, report } from './report.ts';

const files = Number(process.env.BENCH_FILES ?? 10_000);
const rounds = Number(process.env.BENCH_ROUNDS ?? 20);

interface Timeline {
  events: {
    event_type: string;
    occurred_at: string;
    payload?: { kind?: string; name?: string; duration_ms?: number };
  }[];
}

/** About 2 KB of text that compresses like source. */
function textOf(file: number): string {
  const word = (line: number) => createHash('sha1').update(`${file} ${line}`).digest('hex').slice(0, 12);
  return Array.from({ length: 40 }, (_, line) => `const ${word(line)} = read(${line}, { of: '${file}' });\n`).join('');
}

const host = await startFakeGitHost();
const tree = Object.fromEntries(
  Array.from({ length: files }, (_, n) => [`src/${n % 100}/${n % 7}/${n}.ts`, textOf(n)]),
);
await host.commit('acme', 'large', tree);
const system = await startSystem({ env: { RUNYARD_CODE_HOST_URL: host.template } });
try {
  const environmentOf = async (round: number) => {
    const config = {
      name: `Bench ${round}`,
      github_repos: [{ owner: 'acme', repo: 'large' }],
      // This command reads every file, as a build does.
      setup_commands: ['find large -type f -not -path "*/.git/*" -print0 | xargs -0 sha256sum > sums'],
    };
    return (await system.call<{ uid: string }>('POST', '/agent/environments', { config }, 201)).uid;
  };

  /**
   * Starts a run in the environment. Returns how many milliseconds the setup took, how many milliseconds it took to keep the prepared
   * workspace for later runs, and whether the run reused a prepared workspace.
   */
  const prepare = async (environment_id: string, config: object = {}) => {
    const runId = await system.createRun('```sh\ntest -s sums\n```', { config: { environment_id, ...config } });
    const run = await system.untilEnded(runId, 300_000);
    await system.until(runId, ({ is_sandbox_running }) => is_sandbox_running === false);
    if (run.state !== 'SUCCEEDED') throw new Error(JSON.stringify(run.status_message));
    const { events } = await system.call<Timeline>('GET', `/agent/runs/${runId}/timeline`);
    const steps = events.flatMap(({ event_type, payload = {} }) =>
      event_type === 'setup_step_finished' ? [payload] : [],
    );
    const isKept = (name?: string) => name?.startsWith('kept') === true;
    const sum = (which: typeof steps) => which.reduce((ms, step) => ms + (step.duration_ms ?? 0), 0);
    return {
      setupMs: sum(steps.filter(({ name }) => !isKept(name))),
      keepMs: sum(steps.filter(({ name }) => isKept(name))),
      isReused: steps.some(({ name }) => name?.startsWith('reused')),
    };
  };

  const first: number[] = [];
  const mirrored: number[] = [];
  const prepared: number[] = [];
  const keeping: number[] = [];
  for (let round = 0; round < rounds; round += 1) {
    // In each round, prepare a new environment, which has no prepared workspace. From the second round on, the mirror of the repository
    // exists already.
    const uid = await environmentOf(round);
    const cold = await prepare(uid, { refresh_environment: true });
    first.push(cold.setupMs);
    keeping.push(cold.keepMs);
    const again = await prepare(uid);
    if (!again.isReused) throw new Error('the prepared workspace was not reused');
    prepared.push(again.setupMs);
    const other = await prepare(await environmentOf(round));
    if (other.isReused) throw new Error('the prepared workspace of another environment was reused');
    mirrored.push(other.setupMs);
  }
  const row = (name: string, sample: number[], ratio = true) => [
    name,
    median(sample).toFixed(0),
    percentile(sample, 0.99).toFixed(0),
    ratio ? (median(first) / median(sample)).toFixed(1) : '',
  ];
  report(
    'Preparation of an environment',
    `Each row is the time to prepare an environment: a repository of ${files} files of about 2 KB is cloned through the gateway from a git host on the same machine, and one setup command reads every file; ${rounds} rounds in turns, with bubblewrap. A prepared workspace is unpacked into the sandbox for each run, because the disk of a sandbox is a separate file system and cannot share files with another sandbox. Ratio: the median of the first preparation divided by the median of the row. The ratio would be larger with a more distant code host or with longer setup commands.`,
    ['preparation', 'median ms', 'p99 ms', 'ratio'],
    [
      row('first: clone and setup command', first),
      row('with the mirror of the repository: fetch, check out, setup command', mirrored),
      row('prepared workspace of an earlier run', prepared),
      row('once, after the first: keep it', keeping, false),
    ],
  );
} finally {
  await system.stop();
  await host.close();
}
