/**
 * Writes the table of client programs in docs/decisions/published-clients.md from the results of their tests.
 *
 * Usage: node test/write-client-table.ts [RESULTS.json …], results of `vitest run FILE --reporter=json --outputFile=RESULTS.json`. Without
 * them it runs the tests.
 */
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';

const root = path.join(import.meta.dirname, '..');
const page = path.join(root, 'docs/decisions/published-clients.md');
const python = 'test/published-client-python.test.ts';
const read = (file: string): string => readFileSync(path.join(root, file), 'utf8');
const requirement = (name: string): string =>
  new RegExp(`^${name}==(\\S+)`, 'm').exec(read('test/python-client/requirements.txt'))?.[1] ?? '';

interface Program {
  readonly name: string;
  readonly version: string;
  /** Test files that drive it. */
  readonly files: readonly string[];
  /** `describe` of its tests, in a file that drives other programs too. */
  readonly suite?: string;
}

const programs: readonly Program[] = [
  {
    name: 'PyPI `warp-platform-sdk`, every method',
    version: requirement('warp-platform-sdk'),
    files: [python],
    suite: 'warp-platform-sdk',
  },
  { name: 'PyPI `oz-agent-sdk`', version: requirement('oz-agent-sdk'), files: [python], suite: 'oz-agent-sdk' },
  {
    name: 'npm `oz-agent-sdk`',
    version: JSON.parse(read('node_modules/oz-agent-sdk/package.json')).version,
    files: ['test/published-client.test.ts', 'test/published-client-repeats.test.ts'],
  },
];

interface Results {
  readonly testResults: readonly {
    readonly name: string;
    readonly assertionResults: readonly { readonly ancestorTitles: readonly string[]; readonly status: string }[];
  }[];
}

function runTests(): string {
  const file = path.join(tmpdir(), `client-results-${process.pid}.json`);
  const files = [...new Set(programs.flatMap((program) => program.files))];
  const args = ['run', ...files, '--reporter=json', `--outputFile=${file}`];
  try {
    execFileSync(path.join(root, 'node_modules/.bin/vitest'), args, { cwd: root, stdio: 'inherit' });
  } catch {
    // Failed tests are in the table.
  }
  return file;
}

const given = process.argv.slice(2);
const results = (given.length > 0 ? given : [runTests()]).flatMap(
  (file) => (JSON.parse(readFileSync(file, 'utf8')) as Results).testResults,
);

const rows = programs.map(({ name, version, files, suite }) => {
  const statuses = results
    .filter((file) => files.some((each) => file.name.endsWith(each)))
    .flatMap((file) => file.assertionResults)
    .filter(({ ancestorTitles }) => suite === undefined || ancestorTitles.includes(suite))
    .map(({ status }) => status);
  const count = (status: string) => statuses.filter((each) => each === status).length;
  const result = `${count('passed')} passed, ${count('failed')} failed, ${statuses.length - count('passed') - count('failed')} skipped`;
  return `| ${name} | ${version} | ${statuses.length === 0 ? 'not run' : result} |`;
});
const table = ['| program | version | tests |', '|---|---|---|', ...rows].join('\n');
const text = readFileSync(page, 'utf8');
const [start, end] = ['<!-- Written by test/write-client-table.ts -->', '<!-- end -->'];
writeFileSync(page, text.replace(new RegExp(`${start}[^]*${end}`), `${start}\n\n${table}\n\n${end}`));
