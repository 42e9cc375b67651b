/** How long the checks take that everybody runs all the time. */
import path from 'node:path';
import { timeOf } from './programs.ts';
import { report } from './report.ts';
import { inTurns, spread, spreadColumns } from './turns.ts';

const rounds = Number(process.env.BENCH_ROUNDS ?? 5);
const cwd = path.resolve(import.meta.dirname, '..');
const check =
  (name: string, ...args: string[]) =>
  () =>
    timeOf({ command: path.join(cwd, 'node_modules/.bin', name), args, cwd });
const samples = await inTurns(
  { 'tsc --noEmit': check('tsc', '--noEmit'), 'biome ci .': check('biome', 'ci', '.'), knip: check('knip') },
  rounds,
  1,
);
report(
  'Checks of the whole repository',
  `${rounds} rounds in turns. Milliseconds.`,
  ['check', ...spreadColumns],
  Object.entries(samples).map(([name, sample]) => [`\`${name}\``, ...spread(sample, 0)]),
);
