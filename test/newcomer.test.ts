/**
 * Runs the README's commands on a fresh clone. Instead of the real `npm ci`, which would need 40 seconds of processor time to write
 * 34,000 files, the test uses a command that links the installed packages of this repository. The lockfile is the same.
 * With `bin/test-long`, the test uses the real `npm ci`.
 */

import { execFileSync } from 'node:child_process';
import {
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { serviceNodeFlags } from '../packages/cli/src/supervise/stack.ts';
import { endCommands, runCommand, startCommand } from './support/command-line.ts';
import { freePort } from './support/free-port.ts';
import { isLong } from './support/long.ts';
import { processesOf } from './support/processes-of.ts';

const repository = path.resolve(import.meta.dirname, '..');
let folder: string;
let clone: string;
let port: number;
/** Environment of the commands. It sets another port, because another program of this machine may use 4180, the port in the README. */
let env: Record<string, string>;

/**
 * Returns a folder for temporary files. If possible, it is on the file system of the repository, because only there hard links to the
 * repository's files work.
 */
const linkable = (): string =>
  [tmpdir(), '/tmp', '/var/tmp'].find((place) => statSync(place).dev === statSync(repository).dev) ?? tmpdir();

/**
 * Writes a program `npm` that knows only `ci`: it links or copies the packages of the repository into its working directory. Returns
 * the folder of this program, for PATH.
 */
function writeLinkingNpm(): string {
  const bin = path.join(folder, 'bin');
  mkdirSync(bin);
  const copy = (from: string) =>
    `cp -al "${repository}/${from}" "${from}" 2>/dev/null || cp -a "${repository}/${from}" "${from}"`;
  const lines = ['#!/bin/sh', 'set -eu', '[ "$1" = ci ]', '[ ! -e node_modules ]', copy('node_modules')];
  for (const name of globSync('packages/*/node_modules', { cwd: repository })) lines.push(copy(name));
  lines.push('rm -rf node_modules/.runyard-lock.json node_modules/.cache node_modules/.vitest-cache', '');
  writeFileSync(path.join(bin, 'npm'), lines.join('\n'), { mode: 0o755 });
  return bin;
}

beforeAll(async () => {
  folder = mkdtempSync(path.join(linkable(), 'runyard-newcomer-'));
  clone = path.join(folder, 'runyard');
  execFileSync('git', ['clone', '-q', '--shared', repository, clone]);
  port = await freePort();
  env = { RUNYARD_PORT: String(port), npm_config_prefer_offline: 'true' };
  if (!isLong) env.PATH = `${writeLinkingNpm()}:${process.env.PATH}`;
});

afterAll(async () => {
  endCommands();
  if (existsSync(path.join(clone, 'node_modules')))
    await runCommand(['bin/runyard', 'down', '--force'], { cwd: clone, env });
  rmSync(folder, { recursive: true, force: true });
});

/** The commands of the README, in order. */
function commands(): string[] {
  const text = readFileSync(path.join(clone, 'README.md'), 'utf8').replaceAll(':4180', `:${port}`);
  return [...text.matchAll(/^```sh\n(.*?)^```$/gms)].map(([, body]) => (body ?? '').trim());
}

test('the first command of the README installs and starts everything, shows the run and succeeds', {
  timeout: 300_000,
}, async () => {
  const [first] = commands();
  expect(first).toBe('bin/runyard run examples/hello.md');
  const { code, output } = await runCommand(['sh', '-c', first ?? ''], { cwd: clone, env });
  expect(output).toContain('installing dependencies');
  expect(output).toContain('it stays; dashboard: bin/runyard open; stop it with: bin/runyard down');
  expect(output).toMatch(/^ {2}│ step 3 of 3$/m);
  expect(output).toContain('SUCCEEDED');
  expect(output).toContain('hello.txt');
  expect(code).toBe(0);
  // With the real npm, the dashboard is installed and built in the background.
  await vi.waitFor(async () => expect(await (await fetch(`http://127.0.0.1:${port}/`)).text()).toContain('/app/'), {
    timeout: 180_000,
    interval: 500,
  });
  const [service] = processesOf(clone).filter(({ command }) => command.includes('packages/service/src/main.ts'));
  for (const flag of serviceNodeFlags) expect(service?.command.split(' ')).toContain(flag);
  const link = /^ +(http:\S+\/blobs\/\S+)$/m.exec(output)?.[1] ?? '';
  expect(await (await fetch(link)).text()).toMatch(/^Hello from run /);
});

test('the curl command of the README creates a run, which succeeds', async () => {
  const curl = commands().find((command) => command.startsWith('curl'));
  const { output } = await runCommand(['sh', '-c', curl ?? 'false'], { cwd: clone, env });
  const { run_id: runId, state } = JSON.parse(output);
  expect(state).toBe('QUEUED');
  const logs = await runCommand(['bin/runyard', 'logs', runId, '--follow'], { cwd: clone, env });
  expect(logs.output).toContain('hello from the sandbox');
  const { output: item } = await runCommand(['bin/runyard', 'runs', 'get', runId], { cwd: clone, env });
  expect(JSON.parse(item).state).toBe('SUCCEEDED');
});

test('bin/runyard works from another folder and through a symbolic link, and exits with 1 when the run fails', async () => {
  const link = path.join(folder, 'yard');
  symlinkSync(path.join(clone, 'bin/runyard'), link);
  const { code, output } = await runCommand([link, 'run', '-'], {
    cwd: folder,
    env,
    input: '```sh\necho from afar\nexit 7\n```\n',
  });
  expect(output).toContain('│ from afar');
  expect(output).toContain('✗ exit 7');
  expect(output).toContain('FAILED');
  expect(code).toBe(1);
});

test('the command of the README for tests works in the clone', { tags: 'long' }, async () => {
  expect(commands()).toContain('bin/test');
  // Run only one test file, because a full run would include this file and start itself again.
  const { code, output } = await runCommand(['bin/test', '--filter', 'terminal/amounts'], { cwd: clone, env });
  expect(output.trimEnd().split('\n').at(-1)).toMatch(/^\d+ passed, 0 failed, 0 skipped$/);
  expect(code).toBe(0);
});

test('`down` stops everything and leaves no process', async () => {
  expect(processesOf(clone).length).toBeGreaterThan(0);
  const { code, output } = await runCommand(['bin/runyard', 'down'], { cwd: clone, env });
  expect(output).toBe('stopped\n');
  expect(code).toBe(0);
  expect(processesOf(clone)).toEqual([]);
  expect((await runCommand(['bin/runyard', 'status'], { cwd: clone, env })).code).toBe(1);
});

test('`up` works if the dashboard cannot be built: a page says so, the printed curl command works without changes, and no process stays after Ctrl-C', {
  tags: 'long',
}, async () => {
  const source = path.join(clone, 'packages/dashboard/src/main.tsx');
  writeFileSync(source, `${readFileSync(source, 'utf8')}\n}`);
  const up = startCommand(['bin/runyard', 'up'], { cwd: clone, env });
  try {
    await up.sees('Ctrl-C stops everything.');
    expect(up.output()).toContain('the dashboard was not built, everything else works');
    expect(readFileSync(path.join(clone, '.runyard/dashboard.log'), 'utf8')).toContain('main.tsx');
    const page = await fetch(`http://127.0.0.1:${port}/runs`);
    expect(page.status).toBe(200);
    expect(await page.text()).toContain('<h1>The dashboard is not built</h1>');
    const curl =
      up
        .output()
        .split('\n\n')
        .find((part) => part.startsWith('curl')) ?? 'false';
    const { output } = await runCommand(['sh', '-c', curl], { cwd: folder, env: {} });
    expect(JSON.parse(output).state).toBe('QUEUED');
    const key = readFileSync(path.join(clone, '.runyard/bootstrap-key'), 'utf8').trim();
    expect(up.output(), 'a screen that is shared shows no key').not.toContain(key);
  } finally {
    up.child.kill('SIGINT');
  }
  expect(await up.exited).toBe(0);
  expect(processesOf(clone)).toEqual([]);
});

test('the tarball of a release works without git and without a network, if npm has the packages in its cache', {
  timeout: 600_000,
  tags: 'long',
}, async () => {
  const release = path.join(folder, 'release');
  const author = { GIT_AUTHOR_NAME: 'A', GIT_AUTHOR_EMAIL: 'a@example.com' };
  const committer = { GIT_COMMITTER_NAME: 'A', GIT_COMMITTER_EMAIL: 'a@example.com' };
  const make = ['bin/release', release, '--version', '99.1.2', '--without-images'] as const;
  const made = await runCommand(make, { cwd: clone, env: { ...env, ...author, ...committer } });
  expect(made).toMatchObject({ code: 0 });
  expect(execFileSync('git', ['tag', '--points-at', 'HEAD'], { cwd: clone, encoding: 'utf8' })).toBe('v99.1.2\n');
  expect((await runCommand(make, { cwd: clone, env })).output).toContain('the tag v99.1.2 exists already');
  execFileSync('tar', ['-xzf', path.join(release, 'runyard-99.1.2.tar.gz'), '-C', folder]);
  const unpacked = { cwd: path.join(folder, 'runyard-99.1.2'), env: { ...env, npm_config_offline: 'true' } };
  const { code, output } = await runCommand(['bin/runyard', 'run', 'examples/hello.md'], unpacked);
  expect(output).toContain('SUCCEEDED');
  expect(output, 'the tarball has the built dashboard').not.toContain('building the dashboard');
  expect(code).toBe(0);
  expect((await runCommand(['bin/runyard', 'down'], unpacked)).output).toBe('stopped\n');
});
