/**
 * Measures how long a run with an environment takes until its agent works, with a repository of 10,000 files and one of 200,001 files and
 * 1 GB, in three cases: the first run, a run with the mirror of the repository, and a run that gets a prepared workspace.
 */
import { createHash } from 'node:crypto';
import { startFakeGitHost } from '../test/fakes/git-host.ts';
import { startSystem } from '../test/support/system.ts';
import { median, percentile, report } from './report.ts';

interface Repository {
  readonly name: string;
  readonly files: number;
  readonly bytesOfFile: number;
  readonly rounds: number;
}

const repositories: readonly Repository[] = [
  {
    name: 'small',
    files: Number(process.env.BENCH_FILES ?? 10_000),
    bytesOfFile: 2000,
    rounds: Number(process.env.BENCH_ROUNDS ?? 20),
  },
  {
    name: 'large',
    files: Number(process.env.BENCH_LARGE_FILES ?? 200_001),
    bytesOfFile: 5400,
    rounds: Number(process.env.BENCH_LARGE_ROUNDS ?? 1),
  },
];

interface Timeline {
  events: {
    event_type: string;
    occurred_at: string;
    payload?: { kind?: string; name?: string; duration_ms?: number };
  }[];
}

/** Returns text that compresses like source. */
function textOf(file: number, bytes: number): string {
  const word = (line: number) => createHash('sha1').update(`${file} ${line}`).digest('hex').slice(0, 12);
  const line = (number: number) => `const ${word(number)} = read(${number}, { of: '${file}' });\n`;
  return Array.from({ length: Math.ceil(bytes / line(0).length) }, (_, number) => line(number)).join('');
}

const host = await startFakeGitHost();
/** Files of one commit. A commit with all files of the large repository would be too long for a string. */
const filesAtOnce = 20_000;
for (const { name, files, bytesOfFile, rounds } of repositories)
  for (let first = 0; rounds > 0 && first < files; first += filesAtOnce) {
    const numbers = Array.from({ length: Math.min(filesAtOnce, files - first) }, (_, n) => first + n);
    const tree = numbers.map((n) => [`src/${n % 100}/${n % 7}/${n}.ts`, textOf(n, bytesOfFile)]);
    await host.commit('acme', name, Object.fromEntries(tree));
  }
const system = await startSystem({ env: { RUNYARD_CODE_HOST_URL: host.template } });
try {
  const environmentOf = async (repo: string, round: number) => {
    const config = {
      name: `Bench ${repo} ${round}`,
      github_repos: [{ owner: 'acme', repo }],
      // This command reads every file, as a build does.
      setup_commands: [`find ${repo} -type f -not -path "*/.git/*" -print0 | xargs -0 sha256sum > sums`],
    };
    return (await system.call<{ uid: string }>('POST', '/agent/environments', { config }, 201)).uid;
  };

  /**
   * Starts a run in the environment. Returns how many milliseconds passed from the creation of the run until its agent worked, how many of
   * them it took to keep the prepared workspace for later runs, and whether the run reused a prepared workspace.
   */
  const start = async (environment_id: string, config: object = {}) => {
    const runId = await system.createRun('```sh\ntest -s sums\n```', { config: { environment_id, ...config } });
    const run = await system.untilEnded(runId, 1_800_000);
    await system.until(runId, ({ is_sandbox_running }) => is_sandbox_running === false);
    if (run.state !== 'SUCCEEDED') throw new Error(JSON.stringify(run.status_message));
    const { events } = await system.call<Timeline>('GET', `/agent/runs/${runId}/timeline`);
    const at = (type: string) => Date.parse(events.find(({ event_type }) => event_type === type)?.occurred_at ?? '');
    const steps = events.flatMap(({ event_type, payload = {} }) =>
      event_type === 'setup_step_finished' ? [payload] : [],
    );
    if (process.env.BENCH_STEPS) process.stderr.write(`${JSON.stringify(steps)}\n`);
    return {
      untilAtWorkMs: at('agent_started') - Date.parse(run.created_at),
      keepMs: steps.find(({ name }) => name?.startsWith('kept'))?.duration_ms,
      isReused: steps.some(({ name }) => name?.startsWith('reused')),
    };
  };

  const rows: string[][] = [];
  for (const { name, files, bytesOfFile, rounds } of repositories) {
    const first: number[] = [];
    const mirrored: number[] = [];
    const prepared: number[] = [];
    const keeping: number[] = [];
    for (let round = 0; round < rounds; round += 1) {
      // In each round, prepare a new environment, which has no prepared workspace. From the second round on, the mirror of the repository
      // exists already.
      const uid = await environmentOf(name, round);
      const cold = await start(uid, { refresh_environment: true });
      if (cold.keepMs === undefined) throw new Error('the prepared workspace was not kept');
      first.push(cold.untilAtWorkMs);
      keeping.push(cold.keepMs);
      const again = await start(uid);
      if (!again.isReused) throw new Error('the prepared workspace was not reused');
      prepared.push(again.untilAtWorkMs);
      const other = await start(await environmentOf(name, round));
      if (other.isReused) throw new Error('the prepared workspace of another environment was reused');
      mirrored.push(other.untilAtWorkMs);
    }
    const row = (what: string, sample: number[]) => [
      `${files} files, ${Math.round((files * bytesOfFile) / 1e6)} MB: ${what}`,
      median(sample).toFixed(0),
      percentile(sample, 0.99).toFixed(0),
      (median(first) / median(sample)).toFixed(1),
    ];
    if (rounds === 0) continue;
    rows.push(
      row('first run: clone, setup command, keep', first),
      row('with the mirror of the repository', mirrored),
      row('with the prepared workspace', prepared),
      row('part of the first run: keep it', keeping),
    );
  }
  report(
    'Start of a run in an environment',
    `Each row is the time from the creation of a run until its agent works. A repository is cloned through the gateway from a git host on the same machine, and one setup command reads every file; ${repositories.map(({ rounds }) => rounds).join(' and ')} rounds in turns, with bubblewrap as root. A prepared workspace is a copy of the disk of the sandbox that prepared it; on file systems with clones (XFS, Btrfs), which this table does not measure, the copy shares its blocks. Ratio: the median of the first run divided by the median of the row. The ratio would be larger with a more distant code host or with longer setup commands.`,
    ['run', 'median ms', 'p99 ms', 'ratio'],
    rows,
  );
} finally {
  await system.stop();
  await host.close();
}
