/**
 * Compares the versions of the outside programs with the newest published ones, tests the programs, and writes docs/world.md.
 * `main.ts CACHE [--versions | NAME …]`
 */
import { execFile } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { newerOf, type OutsideProgram, outsidePrograms } from './programs.ts';

const run = promisify(execFile);
const root = path.join(import.meta.dirname, '../..');
const dataFile = path.join(import.meta.dirname, 'versions.json');
const [cache = '', ...named] = process.argv.slice(2);
const comparesOnly = named.includes('--versions');
const maxBuffer = 64 * 1024 * 1024;

/** Asks the registry for the newest version. Throws if the registry does not answer. */
async function newestOf({ name, registry, used }: OutsideProgram): Promise<string> {
  const [command, args] =
    registry === 'npm'
      ? ['npm', ['view', name, 'version']]
      : ['python3', ['-m', 'pip', 'index', 'versions', '--disable-pip-version-check', name]];
  const { stdout } = await run(command as string, args as string[]);
  const latest = registry === 'npm' ? stdout.trim() : (/\((\S+)\)/.exec(stdout)?.[1] ?? '');
  if (!/^\d/.test(latest)) throw new Error(`the registry gave no version of ${name}: ${stdout.slice(0, 100)}`);
  return newerOf(latest, used);
}

/** Runs a test file. Returns its result; throws if a test failed or no test ran. */
async function runFile(file: string): Promise<string> {
  const folder = await mkdtemp(path.join(tmpdir(), 'runyard-world-'));
  const report = path.join(folder, 'report.json');
  // Ignore the exit code, because the report has the failed tests.
  await run('npx', ['vitest', 'run', file, '--reporter=json', `--outputFile=${report}`], {
    cwd: root,
    env: { ...process.env, TEST_LONG: '1' },
    maxBuffer,
  }).catch(() => {});
  const counts = JSON.parse(await readFile(report, 'utf8').catch(() => '{}')) as Record<string, number>;
  await rm(folder, { recursive: true, force: true });
  const { numPassedTests: passed = 0, numFailedTests: failed = 0, numPendingTests: skipped = 0 } = counts;
  const result = `${passed} tests passed, ${failed} failed, ${skipped} skipped`;
  if (passed === 0 || failed > 0) throw new Error(result);
  return result;
}

/** Tests the newest version of a coding agent by the effects of its cases. Throws if a case failed. */
async function runHarness(type: string, version: string): Promise<string> {
  const env = { ...process.env, HARNESS_VERSIONS: JSON.stringify({ [type]: version }) };
  const args = [path.join(root, 'bench/harnesses/main.ts'), cache, type];
  const { stdout } = await run(process.execPath, args, { cwd: root, env, maxBuffer }).catch(
    (error: { stdout?: string }) => ({ stdout: error.stdout ?? '' }),
  );
  const cases = stdout.split('\n').filter((line) => line.startsWith(`${type}: `));
  const failed = cases.filter((line) => line.includes('**fails**'));
  const result = `${cases.length - failed.length} of ${cases.length} cases`;
  if (cases.length === 0 || failed.length > 0) throw new Error([result, ...failed].join('; '));
  return result;
}

const tested = new Map<string, Promise<string>>();

/** Tests a program. Programs with the same test file are tested once. */
async function testOf({ used, test }: OutsideProgram, newest: string): Promise<string> {
  if ('harness' in test) return await runHarness(test.harness, newest);
  if (used !== newest) throw new Error(`tests use ${used}: take ${newest}, and run this again`);
  const known = tested.get(test.file) ?? runFile(test.file);
  tested.set(test.file, known);
  return await known;
}

/** Names on the command line choose the programs to test. */
const isChosen = ({ name }: OutsideProgram): boolean => named.length === 0 || named.includes(name);

const today = new Date().toISOString().slice(0, 10);
const before = JSON.parse(readFileSync(dataFile, 'utf8')) as Record<string, { version: string; changed: string }>;
const rows: string[] = [];
let failed = 0;

for (const program of outsidePrograms()) {
  const key = `${program.registry} ${program.name}`;
  let newest = 'unknown';
  let result: string;
  try {
    newest = await newestOf(program);
    const { version, changed } = before[key] ?? { version: program.used, changed: '' };
    const change = version === newest ? changed : `${version} → ${newest} on ${today}`;
    before[key] = { version: newest, changed: change };
    result = comparesOnly || !isChosen(program) ? 'not tested' : await testOf(program, newest);
  } catch (error) {
    failed += 1;
    result = `**fails**: ${error instanceof Error ? error.message.split('\n')[0] : String(error)}`;
  }
  const cells = [program.name, program.registry, program.used, newest, before[key]?.changed ?? '', result];
  rows.push(`| ${cells.join(' | ')} |`);
  process.stdout.write(`${key} ${newest}: ${result}\n`);
}

writeFileSync(dataFile, `${JSON.stringify(before, null, 2)}\n`);
const head = ['program', 'registry', 'version in use', 'newest version', 'last change', 'result'];
const page = `# Outside programs

The newest published versions of the programs that the documentation names, on ${today}, and the results of their tests. A coding agent is
tested in its newest version by the effects of its work: files, commits that reached the remote repository, answers of tools. The other
programs are tested in the version in use, so a newer version fails until the repository uses it.

| ${head.join(' | ')} |
| ${head.map(() => '---').join(' | ')} |
${rows.join('\n')}

Reproduce: \`bin/test-world\`, which writes this page.
`;
if (named.length === 0) writeFileSync(path.join(root, 'docs/world.md'), page);
process.exitCode = failed === 0 ? 0 : 1;
