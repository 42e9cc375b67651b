/**
 * Program: writes the table of client programs in docs/decisions/published-clients.md. The table shows the results of the tests of
 * each program. For oz-agent-worker, the program reads the results from the file that `bin/test-public-worker` writes.
 *
 * Usage: node test/write-client-table.ts [RESULTS.json …], results of `vitest run FILE --reporter=json --outputFile=RESULTS.json`. Without
 * them it runs the tests.
 */
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { readResults } from '../bench/public-worker/results.ts';

const root = path.join(import.meta.dirname, '..');
const page = path.join(root, 'docs/decisions/published-clients.md');
const read = (file: string): string => readFileSync(path.join(root, file), 'utf8');
const inRequirements = (folder: string, name: string): string =>
  new RegExp(`^${name}==(\\S+)`, 'm').exec(read(`test/${folder}/requirements.txt`))?.[1] ?? '';
const inPackage = (folder: string, name: string): string =>
  JSON.parse(read(`test/${folder}/package.json`)).dependencies[name];
const installed = (name: string): string => JSON.parse(read(`node_modules/${name}/package.json`)).version;

interface Program {
  readonly name: string;
  readonly version: string;
  /** Test files that use the client program. */
  readonly files: readonly string[];
  /** If the test files also test other programs: a text that is part of the full name of each test of this program. */
  readonly named?: string;
}

const python = 'test/published-client-python.test.ts';
const modelClients = ['anthropic', 'google-genai', 'litellm', 'openai'];
const programs: readonly Program[] = [
  {
    name: 'PyPI `warp-platform-sdk`, every method',
    version: inRequirements('python-client', 'warp-platform-sdk'),
    files: [python],
    named: 'warp-platform-sdk',
  },
  {
    name: 'PyPI `oz-agent-sdk`',
    version: inRequirements('python-client', 'oz-agent-sdk'),
    files: [python],
    named: 'oz-agent-sdk',
  },
  {
    name: 'npm `oz-agent-sdk`',
    version: installed('oz-agent-sdk'),
    files: ['test/published-client.test.ts', 'test/published-client-repeats.test.ts'],
  },
  {
    name: `${modelClients.map((name) => `PyPI \`${name}\``).join(', ')}, npm \`ai\`, inside of runs`,
    version: [...modelClients.map((name) => inRequirements('model-clients', name)), installed('ai')].join(', '),
    files: ['test/model-clients.test.ts'],
  },
  {
    name: 'npm `@modelcontextprotocol/client`',
    version: installed('@modelcontextprotocol/client'),
    files: ['packages/service/src/edges/mcp/tools.test.ts'],
  },
  {
    name: 'npm `@modelcontextprotocol/conformance`',
    version: inPackage('mcp-conformance', '@modelcontextprotocol/conformance'),
    files: ['test/mcp-conformance.test.ts'],
  },
  {
    name: 'npm `@modelcontextprotocol/inspector`',
    version: inPackage('mcp-clients', '@modelcontextprotocol/inspector'),
    files: ['test/mcp-clients.test.ts'],
    named: 'inspector',
  },
  {
    name: 'npm `@anthropic-ai/claude-code`, as MCP client',
    version: inPackage('mcp-clients', '@anthropic-ai/claude-code'),
    files: ['test/mcp-clients.test.ts'],
    named: 'Claude Code',
  },
];

interface Results {
  readonly testResults: readonly {
    readonly name: string;
    readonly assertionResults: readonly { readonly fullName: string; readonly status: string }[];
  }[];
}

function runTests(): string {
  const file = path.join(tmpdir(), `client-results-${process.pid}.json`);
  const files = [...new Set(programs.flatMap((program) => program.files))];
  const args = ['run', ...files, '--reporter=json', `--outputFile=${file}`];
  try {
    execFileSync(path.join(root, 'node_modules/.bin/vitest'), args, {
      cwd: root,
      stdio: 'inherit',
      env: { ...process.env, TEST_LONG: '1' },
    });
  } catch {
    // Ignore the exit code of Vitest, because the table also shows failed tests.
  }
  return file;
}

const given = process.argv.slice(2);
const results = (given.length > 0 ? given : [runTests()]).flatMap(
  (file) => (JSON.parse(readFileSync(file, 'utf8')) as Results).testResults,
);

const resultOf = (passed: number, failed: number, skipped: number): string =>
  passed + failed + skipped === 0 ? 'not run' : `${passed} passed, ${failed} failed, ${skipped} skipped`;

const rows = programs.map(({ name, version, files, named = '' }) => {
  const statuses = results
    .filter((file) => files.some((each) => file.name.endsWith(each)))
    .flatMap((file) => file.assertionResults)
    .filter(({ fullName }) => fullName.includes(named))
    .map(({ status }) => status);
  const count = (status: string) => statuses.filter((each) => each === status).length;
  const [passed, failed] = [count('passed'), count('failed')];
  return `| ${name} | ${version} | ${resultOf(passed, failed, statuses.length - passed - failed)} |`;
});
const workerRows = (await readResults()).map(
  ({ backend, version, passed, failed }) =>
    `| Go \`oz-agent-worker\`, ${backend} mode | ${version} | ${resultOf(passed, failed, 0)} |`,
);
const table = ['| program | version | tests |', '|---|---|---|', ...rows, ...workerRows].join('\n');
const text = readFileSync(page, 'utf8');
const [start, end] = ['<!-- Written by test/write-client-table.ts -->', '<!-- end -->'];
writeFileSync(page, text.replace(new RegExp(`${start}[^]*${end}`), `${start}\n\n${table}\n\n${end}`));
