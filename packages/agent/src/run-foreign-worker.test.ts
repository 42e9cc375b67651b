/**
 * Tests an agent that a worker of another project starts. Such a worker starts the agent on the machine without a sandbox, with the home of
 * the machine's user.
 */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import type { AgentTask } from '@runyard/contract/agent/agent-protocol';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type FakeHarnessSupport, startFakeHarnessSupport } from '../../../test/fakes/harness-support.ts';
import { type FakePublicWorkerAgent, startAsPublicWorker } from '../../../test/fakes/public-worker.ts';
import { agentProgram } from '../../../test/support/agent-program.ts';
import { testFolder } from '../test/agent.ts';
import { sh } from '../test/run.ts';
import { unpackFolders } from './workspace-archive/unpack.ts';

const main = await agentProgram();
const keeps = { max_workspace_bytes: 100_000_000 };
let fake: FakeHarnessSupport;
let agent: FakePublicWorkerAgent | undefined;
let machine: string;
let home: string;

beforeEach(() => {
  machine = testFolder();
  home = join(machine, 'home-of-the-user');
  mkdirSync(join(home, '.ssh'), { recursive: true });
  mkdirSync(join(machine, 'tmp'));
  writeFileSync(join(home, '.ssh/id_ed25519'), 'private key');
});
afterEach(async () => {
  agent?.child.kill('SIGKILL');
  await agent?.exited;
  await fake?.close();
});

interface Placed {
  targetDir?: string;
  env?: Record<string, string>;
}

/** Starts an agent with the task, and waits until the agent has ended successfully. */
async function play(task: Partial<AgentTask>, { targetDir, env = {} }: Placed = {}): Promise<void> {
  fake = await startFakeHarnessSupport({ task: { ...keeps, ...task } });
  agent = startAsPublicWorker({
    runId: 'run-1',
    serverRoot: fake.url,
    runToken: fake.token,
    program: [process.execPath, main],
    workspaceRoot: join(machine, 'workspaces'),
    home,
    temporaryFolder: join(machine, 'tmp'),
    env,
    ...(targetDir === undefined ? {} : { targetDir }),
  });
  expect(await agent.exited, agent.output()).toBe(0);
}
const outputs = () => fake.events.flatMap((event) => (event.type === 'action_output' ? [event.text] : [])).join('');
const notices = () => fake.events.flatMap((event) => (event.type === 'notice' ? [event.name] : []));

describe('the agent of another worker, in an empty folder for the run', () => {
  test('saves the workspace and the home that it created, and no file of the user’s home', async () => {
    await play(sh('echo made > file; echo setting > ~/.setting; echo "HOME=$HOME"; pwd'));
    expect(outputs()).toBe(`HOME=${agent?.cwd}/home\n${agent?.cwd}/workspace\n`);
    expect(notices()).toEqual([]);
    const roots = ['workspace', 'home'].map((name) => ({ path: join(machine, `kept-${name}`), excluded: [] }));
    for (const { path } of roots) mkdirSync(path);
    const bytes = fake.workspaces[0]?.bytes ?? Buffer.alloc(0);
    const sha256 = createHash('sha256').update(bytes).digest('hex');
    const { signal } = new AbortController();
    await unpackFolders(Readable.from([bytes]), roots, { sha256, env: process.env, signal });
    const files = execFileSync('find', roots.map(({ path }) => path).concat('-type', 'f'), { encoding: 'utf8' });
    expect(files.trim().split('\n').sort()).toEqual([
      join(machine, 'kept-home/.setting'),
      join(machine, 'kept-workspace/file'),
    ]);
    expect(readdirSync(home)).toEqual(['.ssh']);
  });
});

describe('the agent of another worker, with the run token in its environment', () => {
  test('leaves the run token in the environment of no process while commands run', async () => {
    // Prints the environments of the command itself, the agent, and the agent's parent process.
    const look =
      'p=$$; while [ "$p" -gt 1 ]; do tr "\\0" "\\n" </proc/$p/environ; p=$(awk "/^PPid/ { print \\$2 }" /proc/$p/status); done';
    await play(sh(`(${look}) | grep -e ^CONTROL -e ^RUNYARD`), { env: { CONTROL_OF_THE_TEST: 'visible' } });
    expect(outputs()).toContain('CONTROL_OF_THE_TEST=visible');
    expect(outputs()).toContain('RUNYARD_RUN_TOKEN_FD=4');
    expect(outputs()).not.toContain(fake.token);
  });
});

describe('the agent of another worker, in a folder with files of others', () => {
  const checkout = () => {
    const folder = join(machine, 'checkout');
    mkdirSync(folder);
    execFileSync('git', ['init', '--quiet', folder]);
    writeFileSync(join(folder, 'secret-plan.txt'), 'not for the service');
    return folder;
  };

  test('works in this folder, and does not send its files, its patches or the home', async () => {
    const targetDir = checkout();
    await play(sh('pwd; echo "HOME=$HOME"; ls; ls -A ~'), { targetDir });
    expect(outputs()).toContain(`${targetDir}\n`);
    expect(outputs()).toContain('secret-plan.txt');
    expect(outputs()).toContain(`HOME=${join(machine, 'tmp')}/runyard-home-`);
    expect(outputs()).not.toContain('.ssh');
    expect(fake.workspaces).toEqual([]);
    expect(fake.snapshots).toEqual([]);
    expect(notices()).toEqual(['workspace_not_kept']);
  });

  test('removes the temporary home', async () => {
    await play(sh('echo x > ~/file'), { targetDir: checkout() });
    expect(readdirSync(join(machine, 'tmp')).filter((name) => name.startsWith('runyard-'))).toEqual([]);
  });

  test('sends files that the agent hands off', async () => {
    const bin = join(machine, 'bin');
    mkdirSync(bin);
    writeFileSync(
      join(bin, 'report-artifact'),
      `#!/bin/sh\nexec '${process.execPath}' '${main}' report-artifact "$@"\n`,
      {
        mode: 0o755,
      },
    );
    await play(sh('echo result > result.txt; report-artifact handoff result.txt'), {
      targetDir: checkout(),
      env: { PATH: `${bin}:/usr/bin:/bin` },
    });
    expect(fake.snapshots.map(({ files }) => files.map(({ filename }) => filename))).toEqual([['result.txt']]);
  });

  test('does not restore an archive into the folder', async () => {
    const targetDir = checkout();
    const path = '/api/v1/harness-support/workspace/earlier';
    const workspace = { kind: 'archive', path, size_bytes: 9, sha256: 'a'.repeat(64), execution_number: 1, turn: 1 };
    await play({ ...sh('true'), workspace: workspace as AgentTask['workspace'] }, { targetDir });
    expect(existsSync(join(targetDir, 'secret-plan.txt'))).toBe(true);
    expect(notices()).toContain('workspace_not_restored');
    expect(fake.requests.map((request) => request.path)).not.toContain(path);
  });

  test('uses the home that the operator names and does not send the files of this home', async () => {
    await play(sh('ls -A ~'), { targetDir: checkout(), env: { RUNYARD_AGENT_HOME: home } });
    expect(outputs()).toBe('.ssh\n');
    expect(fake.workspaces).toEqual([]);
  });
});
