/** Program: runs all checks of the repository, the cheapest first. Started by bin/test. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { answersVariable } from '../support/answers-of-process.ts';
import { placeOfRuns } from '../support/temporary-folder.ts';
import { compareAnswers } from './answers.ts';
import { findClassFaults } from './class-names.ts';
import { findImportFaults } from './import-rules.ts';
import { type Outcome, renderOutcomes } from './outcome.ts';
import { startPostgresServer } from './postgres-server.ts';
import { runCommand } from './processes.ts';
import { reportVariable, type VitestReport } from './reporter.ts';
import { installSystemPackages, newestPostgres } from './system-packages.ts';
import { findReaderFaults } from './table-readers.ts';
import { findWriterFaults } from './table-writers.ts';
import { findTestFiles, sliceForServer } from './test-files.ts';

const root = path.resolve(import.meta.dirname, '../..');
const { values } = parseArgs({
  options: { filter: { type: 'string', default: '' }, server: { type: 'boolean', default: false } },
});
const { filter } = values;
/** True if all checks run. False if options select a part of the test files. */
const isWhole = filter === '' && !values.server;
process.env.TMPDIR = placeOfRuns();

/**
 * Environment of the tools in `node_modules/.bin`. PATH begins with the folder of this Node, because the Node of the system may be too
 * old. The Runyard settings and keys of the person who runs the checks are removed.
 */
const env: NodeJS.ProcessEnv = {
  ...Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^(RUNYARD_|TEST_DATABASE_URL$)/.test(name))),
  PATH: `${path.dirname(process.execPath)}${path.delimiter}${process.env.PATH}`,
  ...(process.stdout.isTTY ? {} : { NO_COLOR: '1' }),
  // As in bin/with-node: Node keeps the compiled sources here for the next run.
  NODE_COMPILE_CACHE: path.join(root, 'node_modules/.cache/compiled'),
};
const tool = (name: string) => path.join(root, 'node_modules/.bin', name);
const say = (message: string) => console.log(`\n── ${message}`);
const outcomes: Outcome[] = [];

/** Runs a program that counts as one passed or failed check. */
async function check(name: string, command: readonly [string, ...string[]]): Promise<void> {
  say(name);
  const { code, timedOut, durationMs, cpuMs } = await runCommand(command, { cwd: root, env, limitMs: 180_000 });
  const failure = timedOut ? 'took too long' : `exit code ${code}`;
  outcomes.push(
    code === 0
      ? { name, passed: 1, failed: 0, skipped: [], failures: [], durationMs, cpuMs }
      : { name, passed: 0, failed: 1, skipped: [], failures: [failure], durationMs, cpuMs },
  );
}

/** Runs a check in this process. `findFaults` returns one sentence for each fault. */
function checkHere(name: string, findFaults: () => string[]): void {
  say(name);
  const startedAt = performance.now();
  const failures = findFaults();
  outcomes.push({
    name,
    passed: failures.length === 0 ? 1 : 0,
    failed: failures.length,
    skipped: [],
    failures,
    durationMs: performance.now() - startedAt,
  });
}

/** With a filter, the limit is higher, because `bin/test-long` uses a filter for single files that take very long. */
const limitMinutes = filter === '' ? 50 : 60;

interface VitestOptions {
  readonly env?: NodeJS.ProcessEnv;
  /** Number of test files that run at the same time. */
  readonly workers: number;
  /** True: prints the output only when all files have run, so that it does not mix with the output of another Vitest process. */
  readonly showsOutputAtEnd?: boolean;
}

/** Runs test files. Returns true if vitest reached its end, even with failures. */
async function vitest(name: string, files: readonly string[], options: VitestOptions): Promise<boolean> {
  if (files.length === 0) return true;
  say(`${name} (${files.length} files)${options.showsOutputAtEnd ? ', shown at their end' : ''}`);
  const folder = mkdtempSync(path.join(tmpdir(), 'runyard-checks-'));
  const report = path.join(folder, 'report.json');
  const outputFile = options.showsOutputAtEnd ? path.join(folder, 'output') : undefined;
  const reporter = path.join(root, 'test/checks/reporter.ts');
  try {
    const { code, timedOut, durationMs, cpuMs } = await runCommand(
      [tool('vitest'), 'run', '--reporter=dot', `--reporter=${reporter}`, `--maxWorkers=${options.workers}`, ...files],
      {
        cwd: root,
        env: { ...env, ...options.env, [reportVariable]: report },
        limitMs: limitMinutes * 60_000,
        outputFile,
      },
    );
    if (outputFile !== undefined) {
      say(name);
      process.stdout.write(readFileSync(outputFile));
    }
    const read = readReport(report);
    const failures = [...(read?.failures ?? [])];
    if (timedOut) failures.push(`took longer than ${limitMinutes} minutes`);
    else if (failures.length === 0 && (code !== 0 || !read)) failures.push(`vitest ended with exit code ${code}`);
    outcomes.push({
      name,
      passed: read?.passed ?? 0,
      failed: failures.length,
      skipped: read?.skipped ?? [],
      failures,
      left: read?.left ?? {},
      durationMs,
      cpuMs,
      files: read?.files ?? [],
    });
    return read !== undefined && !timedOut;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function readReport(file: string): VitestReport | undefined {
  try {
    return JSON.parse(readFileSync(file, 'utf8'));
  } catch {
    return undefined;
  }
}

async function onPostgresServer(files: readonly string[]): Promise<void> {
  if (files.length === 0) return;
  const name = 'database tests on a PostgreSQL server';
  const bin = newestPostgres();
  if (!bin) {
    const skipped = files.map((file) => ({ name: file, reason: 'there is no /usr/lib/postgresql/*/bin' }));
    outcomes.push({ name, passed: 0, failed: 0, skipped, failures: [], durationMs: 0 });
    return;
  }
  const startedAt = performance.now();
  try {
    const server = await startPostgresServer(bin);
    try {
      await vitest(`database tests on PostgreSQL ${server.version}`, files, {
        env: { TEST_DATABASE_URL: server.url },
        // Each worker loads all modules again. In a full run, one worker is enough, because all other tests run at the same time and
        // take longer.
        workers: isWhole ? 1 : processors,
        showsOutputAtEnd: true,
      });
    } finally {
      await server.stop();
    }
  } catch (error) {
    console.error(error);
    outcomes.push({
      name,
      passed: 0,
      failed: 1,
      skipped: [],
      failures: ['the server did not start'],
      durationMs: performance.now() - startedAt,
    });
  }
}

const processors = Math.max(2, Math.min(4, availableParallelism()));

/**
 * Number of test files that run at the same time. It is about twice the number of processors, because a file spends half of its time
 * waiting for programs and the database. Each further test process would take 10 seconds of processor time to load all modules.
 */
const together = 2 * processors + 1;

// Install packages only for a full run. A person who runs one file did not ask for a change of the machine. Tests skip themselves if a
// package is missing.
if (isWhole) installSystemPackages(say);
const files = findTestFiles(root, filter);
if (isWhole) {
  await check('types (tsc)', [tool('tsc'), '--noEmit', '--checkers', String(processors)]);
  await check('types of the dashboard (tsc)', [tool('tsc'), '--noEmit', '-p', 'packages/dashboard']);
  await check('lint and format (biome)', [tool('biome'), 'ci', ...(process.stdout.isTTY ? [] : ['--colors=off']), '.']);
  // Run these two programs at the same time, because each of them uses only one processor.
  await Promise.all([
    check('dead code (knip)', [tool('knip'), '--no-progress']),
    check('generated pages', [path.join(root, 'bin/generate'), '--check']),
  ]);
  checkHere('import rules', () => findImportFaults(root));
  checkHere('one writer per table', () => findWriterFaults(root));
  checkHere('declared readers of tables', () => findReaderFaults(root));
  checkHere('class names of the dashboard', () => findClassFaults(root));
}
const answers = mkdtempSync(path.join(tmpdir(), 'runyard-answers-'));
try {
  // Run both groups of test files at the same time: tests of the service and the database use the processors while tests of whole
  // programs wait.
  const onServer = onPostgresServer(isWhole ? sliceForServer(files.database) : files.database);
  const haveEnded =
    values.server ||
    (await vitest('units, service and end to end', [...files.programs, ...files.service], {
      env: { [answersVariable]: answers },
      workers: together,
    }));
  await onServer;
  // Compare the answers only after a full run, because a test that did not run has received no answers.
  if (isWhole && haveEnded) checkHere('answers (OpenAPI document and tests)', () => compareAnswers(answers));
} finally {
  rmSync(answers, { recursive: true, force: true });
}
if (outcomes.length === 0) {
  console.log(`no test file has ${JSON.stringify(filter)} in its path`);
  process.exitCode = 1;
}
process.stdout.write(renderOutcomes(outcomes));
if (outcomes.some((outcome) => outcome.failed > 0)) process.exitCode = 1;
