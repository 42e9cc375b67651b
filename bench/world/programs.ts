/** The outside programs that the documentation names, with the version that the repository uses and the test of the program. */
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { presetTypes } from '@runyard/contract/agent/harness-presets/preset';
import { presets } from '@runyard/contract/agent/harness-presets/presets';

export interface OutsideProgram {
  /** Name of the package on the registry. */
  readonly name: string;
  readonly registry: 'npm' | 'PyPI';
  /** Version that the tests of the repository use. */
  readonly used: string;
  /** Kind of harness, or a test file. */
  readonly test: { readonly harness: string } | { readonly file: string };
}

const root = path.join(import.meta.dirname, '../..');
const textOf = (name: string): string => readFileSync(path.join(root, name), 'utf8');

function npmVersion(manifest: string, name: string): string {
  const { dependencies = {}, devDependencies = {} } = JSON.parse(textOf(manifest)) as Record<string, object>;
  return String({ ...dependencies, ...devDependencies }[name as never]);
}

function pythonVersion(requirements: string, name: string): string {
  return textOf(requirements)
    .split('\n')
    .flatMap((line) => (line.startsWith(`${name}==`) ? [line.split(/==| /)[1] ?? ''] : []))
    .join();
}

const fromNpm = (name: string, manifest: string, file: string): OutsideProgram => ({
  ...{ name, registry: 'npm', used: npmVersion(manifest, name), test: { file } },
});

const fromPython = (name: string): OutsideProgram => ({
  ...{ name, registry: 'PyPI', used: pythonVersion('test/python-client/requirements.txt', name) },
  test: { file: 'test/published-client-python.test.ts' },
});

/** Returns all programs. */
export const outsidePrograms = (): readonly OutsideProgram[] => [
  ...presetTypes.map((type): OutsideProgram => {
    const { package: name, version: used } = presets[type].program;
    return { name, registry: 'npm', used, test: { harness: type } };
  }),
  fromNpm('oz-agent-sdk', 'package.json', 'test/published-client.test.ts'),
  fromPython('oz-agent-sdk'),
  fromPython('warp-platform-sdk'),
  fromNpm('@modelcontextprotocol/server-everything', 'package.json', 'test/model-runs.test.ts'),
  fromNpm('@modelcontextprotocol/server-filesystem', 'package.json', 'test/model-runs.test.ts'),
  fromNpm('@modelcontextprotocol/conformance', 'test/mcp-conformance/package.json', 'test/mcp-conformance.test.ts'),
  fromNpm('@modelcontextprotocol/inspector', 'test/mcp-clients/package.json', 'test/mcp-clients.test.ts'),
];

/** Returns the newer of two versions. A release is newer than its pre-releases, of which the later one in alphabetical order is newer. */
export function newerOf(a: string, b: string): string {
  const [[coreA = '', ...preA], [coreB = '', ...preB]] = [a.split('-'), b.split('-')];
  const order = coreA.localeCompare(coreB, 'en', { numeric: true });
  if (order !== 0) return order > 0 ? a : b;
  if (preA.length === 0 || preB.length === 0) return preA.length === 0 ? a : b;
  return preA.join('-').localeCompare(preB.join('-'), 'en', { numeric: true }) > 0 ? a : b;
}
