import { spawnSync } from 'node:child_process';
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { AgentTask } from '@runyard/contract/agent/agent-protocol';
import { rehearsalTask } from '@runyard/contract/agent/rehearsal-task';
import { afterEach, beforeEach, expect, onTestFinished, test, vi } from 'vitest';
import { testFolder } from '../../test/agent.ts';
import type { StepResult } from '../reporting/setup-steps.ts';
import { type PreparedWorkspace, preparedWorkspace } from './prepared.ts';

let top: string;
beforeEach(() => {
  top = testFolder();
  for (const name of ['w', 'h', 'tmp']) mkdirSync(join(top, name));
  vi.stubEnv('TMPDIR', join(top, 'tmp'));
});
afterEach(() => void vi.unstubAllEnvs());

const task: AgentTask = { ...rehearsalTask, attachments: [], prepared_workspace: { name: 'n' } };
const withDebian: AgentTask = {
  ...task,
  environment: { uid: 'e', config: { system: 'debian' } },
};
const proxyVariables = { HTTPS_PROXY: 'http://127.0.0.1:1', no_proxy: 'localhost' };

interface Answers {
  readonly find?: number;
  readonly use?: number;
  readonly keep?: number;
}

async function prepare(more: Record<string, string> = {}, answers: Answers = {}, of = task) {
  const names: string[] = [];
  let isKept = false;
  const prepared = await preparedWorkspace({
    task: of,
    cache: {
      get: async () => undefined,
      workspace: async (action) => ({ status: answers[action] ?? 501 }),
      put: async (_name, content) => {
        for await (const _ of content);
        isKept = true;
        return true;
      },
    },
    workspace: join(top, 'w'),
    env: { PATH: process.env.PATH, HOME: join(top, 'h'), RUNYARD_AGENT_SOCKET: top, ...more },
    proxyVariables,
    step: async (_kind, name, work) => {
      const result: StepResult = {};
      const value = await work(result);
      names.push(result.name ?? name);
      return value;
    },
    signal: new AbortController().signal,
  });
  return { prepared, keep: async () => await (prepared as PreparedWorkspace).keep(true), names, isKept: () => isKept };
}

test('the worker stores a prepared workspace if the setup used the proxy for allowed hosts', async () => {
  const { keep, names, isKept } = await prepare(proxyVariables);
  mkdirSync(join(top, 'tmp/node-compile-cache'));
  await keep();
  expect(names).toEqual(['kept for later runs in this environment']);
  expect(isKept()).toBe(true);
});

test.each([{ HTTPS_PROXY: 'http://user:secret@proxy' }, { TOKEN: 'x' }])(
  'the worker does not store a prepared workspace if the setup had the variable %j, whose origin is unknown',
  async (variables) => {
    const { prepared } = await prepare({ ...proxyVariables, ...variables });
    expect(prepared).toBe(
      `the sandbox has the variable ${Object.keys(variables)[0]}, which is not from the environment`,
    );
  },
);

test('the setup step says why the workspace was not stored', async () => {
  const { keep, names, isKept } = await prepare();
  for (const name of ['a', 'b', 'c', 'd']) writeFileSync(join(top, 'tmp', name), '');
  await keep();
  expect(names).toEqual([
    expect.stringMatching(/^not kept for later runs: the setup left files in \/tmp, .*: [a-d], [a-d], [a-d], …$/),
  ]);
  expect(isKept()).toBe(false);
});

/** Mounts a file system on the folder, or changes it. Returns false if this process may not mount. */
const mount = (folder: string, ...options: string[]): boolean =>
  spawnSync('mount', ['-t', 'tmpfs', '-o', options.join(), 'tmpfs', folder]).status === 0;

test('if the worker was killed while it copied the disk, the setup continues only when the disk is writable again', async ({
  skip,
}) => {
  const { keep, names } = await prepare({}, { keep: 503 });
  const workspace = join(top, 'w');
  if (!mount(workspace, 'ro')) return skip('only root can mount');
  onTestFinished(() => void spawnSync('umount', [workspace]));
  let isOver = false;
  const keeping = keep().then(() => {
    isOver = true;
  });
  await expect(writeFile(join(workspace, 'a'), '')).rejects.toThrow('EROFS');
  expect(isOver).toBe(false);
  expect(mount(workspace, 'remount', 'rw')).toBe(true);
  await keeping;
  expect(names).toEqual(['not kept for later runs: the worker could not copy the workspace']);
});

test.each([
  ['empties the folders and continues', 404, task, 'not reused'],
  ['empties the folders and continues', 503, task, 'not reused'],
  ['empties the folders and continues', 404, withDebian, 'not reused'],
  // The worker may have replaced a part of the programs.
  ['fails', 503, withDebian, 'the Debian that an earlier run has prepared'],
])('the setup %s if the worker answers %i when the sandbox should get a copy', async (_, use, of, expected) => {
  const { prepared, names } = await prepare({}, { find: 200, use }, of);
  if (typeof prepared !== 'object') throw new Error('the result of the setup is not reused');
  const restoring = prepared.restore();
  // A copy that was interrupted has left a file.
  writeFileSync(join(top, 'w', 'part'), '');
  const outcome = await restoring.then((isReused) => (isReused ? 'reused' : 'not reused'), String);
  expect(outcome).toContain(expected);
  expect(readdirSync(join(top, 'w'))).toEqual([]);
  expect(names).toEqual(
    expected === 'not reused' ? ['the prepared workspace of an earlier run could not be used'] : [],
  );
});
