/** Measures the time until `runyard --help` has ended, with and without compiled code from earlier starts. */
import { mkdtemp, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { timeOf } from './programs.ts';
import { median, report } from './report.ts';
import { inTurns, spread, spreadColumns } from './turns.ts';

const rounds = Number(process.env.BENCH_ROUNDS ?? 25);
const root = path.resolve(import.meta.dirname, '..');
const folder = await mkdtemp(path.join(tmpdir(), 'runyard-bench-cli-'));
const cached = { NODE_COMPILE_CACHE: path.join(folder, 'cache') };
const node =
  (args: readonly string[], env = {}) =>
  () =>
    timeOf({ command: process.execPath, args, env });
const main = path.join(root, 'packages/cli/src/main.ts');
try {
  const samples = await inTurns(
    {
      empty: node(['-e', '0']),
      plain: node([main, '--help']),
      cached: node([main, '--help'], cached),
      command: () => timeOf({ command: path.join(root, 'bin/runyard'), args: ['--help'], env: cached }),
    },
    rounds,
  );
  const nodeMb = Math.round((await stat(process.execPath)).size / 1e6);
  const times = (median(samples.plain) / median(samples.cached)).toFixed(1);
  report(
    'Start of the command',
    `Each row is the time, in milliseconds, from the start of the process to its end, ${rounds} rounds in turns. With compiled code, the command starts **${times} times** as fast (ratio of the medians). The Node binary has ${nodeMb} MB.`,
    ['program', ...spreadColumns],
    [
      ['`node -e 0`', ...spread(samples.empty, 0)],
      ['`node packages/cli/src/main.ts --help`', ...spread(samples.plain, 0)],
      ['… with its compiled code (`NODE_COMPILE_CACHE`)', ...spread(samples.cached, 0)],
      ['`bin/runyard --help`, with its compiled code', ...spread(samples.command, 0)],
    ],
  );
} finally {
  await rm(folder, { recursive: true, force: true });
}
