/**
 * Tests `bin/runyard-agent` (the launcher). The tests start it in the same way as the direct backend of oz-agent-worker starts its
 * agent program.
 */
import { execFile } from 'node:child_process';
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import type { AgentTask } from '@runyard/contract/agent/agent-protocol';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { findProcesses } from '../packages/worker/src/state/processes.ts';
import { type FakeHarnessSupport, startFakeHarnessSupport } from './fakes/harness-support.ts';
import { type FakePublicWorkerAgent, startAsPublicWorker } from './fakes/public-worker.ts';
import { closeAtEnd, newFolder } from './support/close-at-end.ts';
import { programFile } from './support/programs.ts';
import { eventually } from './support/system.ts';

const launcher = path.resolve(import.meta.dirname, '../bin/runyard-agent');
/** The first start takes longer, because it bundles the agent. */
const startLimitMs = 120_000;
const keeps = { max_workspace_bytes: 100_000_000 };
let fake: FakeHarnessSupport;
let agent: FakePublicWorkerAgent | undefined;
let runs = 0;

const machine = newFolder();
const home = path.join(machine, 'home-of-the-user');
mkdirSync(path.join(home, '.ssh'), { recursive: true });
mkdirSync(path.join(machine, 'tmp'));
writeFileSync(path.join(home, '.ssh/id_ed25519'), 'private key');
beforeEach(async () => {
  fake = closeAtEnd(await startFakeHarnessSupport());
});
afterEach(async () => {
  agent?.child.kill('SIGKILL');
  await agent?.exited;
});

function start(
  script: string,
  more: Partial<AgentTask> = {},
  program: readonly [string, ...string[]] = [launcher],
): FakePublicWorkerAgent {
  fake.task = { ...fake.task, ...keeps, ...more, prompt: `\`\`\`sh\n${script}\n\`\`\`` };
  agent = startAsPublicWorker({
    runId: `run-${++runs}`,
    serverRoot: fake.url,
    runToken: fake.token,
    program,
    workspaceRoot: path.join(machine, 'workspaces'),
    home,
    temporaryFolder: path.join(machine, 'tmp'),
    env: { RUNYARD_DATA_DIR: path.join(machine, 'data') },
  });
  return agent;
}

/** Executes the script as the command of a run, and returns the output of the command. */
async function play(script: string): Promise<string> {
  const { exited, output } = start(script);
  expect(await exited, output()).toBe(0);
  return fake.events.flatMap((event) => (event.type === 'action_output' ? [event.text] : [])).join('');
}

// This test also makes the runtime that the launchers of the tests below use.
test(
  'launchers that start at the same time create one common runtime',
  async () => {
    const folder = path.join(machine, 'data/agent');
    const print = await programFile('print-runtime');
    const made = await Promise.all([1, 2].map(() => promisify(execFile)(process.execPath, [print, folder])));
    expect(new Set(made.map(({ stdout }) => path.dirname(stdout.trim())))).toEqual(
      new Set([path.join(folder, 'runtime')]),
    );
    expect(readdirSync(path.join(folder, 'runtime')).sort()).toEqual(
      [...new Set(made.map(({ stdout }) => path.basename(stdout.trim()))), 'stamp.json'].sort(),
    );
  },
  startLimitMs,
);

test(
  'the launcher gives the agent the commands for runs, its own home folder and its own workspace',
  async () => {
    fake.more = async ({ path: called }) =>
      called.startsWith('/child-runs')
        ? {
            status: 200,
            value: {
              child_runs: [
                {
                  run_id: 'child-1',
                  title: 'A child',
                  state: 'QUEUED',
                  created_at: '2026-01-02T03:04:05.000Z',
                  artifacts: [],
                },
              ],
            },
          }
        : undefined;
    const printed = await play(
      'pwd; echo "$HOME"; ls -A ~ | wc -l; echo 42 > answer.txt; report-artifact answer.txt; child-run list',
    );
    const { cwd } = agent ?? expect.fail('no agent was started');
    expect(printed).toContain(`${cwd}/workspace\n${cwd}/home\n0\n`);
    expect(fake.artifacts.map(({ data, bytes }) => [data.filename, String(bytes)])).toEqual([['answer.txt', '42\n']]);
    expect(printed).toContain('child-1');
    expect(fake.workspaces).toHaveLength(1);
    expect(readdirSync(home)).toEqual(['.ssh']);
  },
  startLimitMs,
);

test(
  'the run token is not in the environment of launcher or agent, and SIGUSR1 is disabled in the agent',
  async () => {
    const look =
      'p=$$; while [ "$p" -gt 1 ]; do tr "\\0" "\\n" </proc/$p/environ; tr "\\0" " " </proc/$p/cmdline; echo; p=$(awk "/^PPid/ { print \\$2 }" /proc/$p/status); done';
    const printed = await play(`(${look}) | grep -a -e ^GIT_CONFIG_GLOBAL -e runyard -e ^RUNYARD`);
    // The script has printed environment and arguments of all its parent processes: launcher and agent are among them.
    expect(printed).toContain(`${launcher} agent run`);
    expect(printed).toMatch(/agent\/node --disable-sigusr1 --openssl-config=\/dev\/null \S+agent\/main.cjs agent run/);
    expect(printed).toContain('RUNYARD_RUN_TOKEN_FD=4');
    expect(printed).not.toContain(fake.token);
  },
  startLimitMs,
);

test(
  'the agent and its processes end when the worker kills the launcher',
  async () => {
    const mark = `4719.${process.pid}`;
    const { child } = start(`echo begun; setsid sleep ${mark} & sleep ${mark}`);
    await fake.until(({ events }) => events.some(({ type }) => type === 'action_output'));
    await eventually('both commands', async () => (await findProcesses('cmdline', mark)).length === 2);
    child.kill('SIGKILL');
    await eventually('the end of the run', async () => (await findProcesses('cmdline', mark)).length === 0);
    await eventually('the report of the agent', async () => fake.shutdowns.length === 1);
    expect(fake.shutdowns).toEqual(['terminated']);
  },
  startLimitMs,
);

test(
  'SIGTERM to the launcher ends the run, and the launcher ends after the agent',
  async () => {
    const { child, exited } = start('echo begun; sleep 600');
    await fake.until(({ events }) => events.some(({ type }) => type === 'action_output'));
    child.kill('SIGTERM');
    expect(await exited).toBe(143);
    expect(fake.shutdowns).toEqual(['terminated']);
  },
  startLimitMs,
);

/** Shell script that starts the agent and then reports its exit, as a dispatch command of the command backend must do. */
const dispatched = '"$0" "$@"; "$0" harness-support --run-id "$TASK_ID" report-shutdown';

test(
  '`harness-support report-shutdown` with the variables of the run reports the exit of an agent that was killed',
  async () => {
    const { exited, output } = start('kill -9 $PPID; sleep 600', {}, ['/bin/sh', '-c', dispatched, launcher]);
    expect(await exited, output()).toBe(0);
    expect(fake.finished).toEqual([]);
    expect(fake.shutdowns).toEqual(['exited: the agent command has ended']);
  },
  startLimitMs,
);

test.each([
  ['harness-support report-shutdown', 0, ''],
  ['harness-support --run-id another report-shutdown', 2, 'the variables belong to the run run-1'],
  ['harness-support ping', 2, 'Usage: harness-support'],
])(
  'agent %s exits with %i for an execution that has ended',
  async (command, code, message) => {
    fake.supersede();
    const env = { ...process.env, TASK_ID: 'run-1', WARP_SERVER_ROOT_URL: fake.url, RUNYARD_RUN_TOKEN: fake.token };
    const entry = path.resolve(import.meta.dirname, '../packages/agent/src/main.ts');
    const ended = await promisify(execFile)(process.execPath, [entry, ...command.split(' ')], { env }).then(
      ({ stderr }) => ({ code: 0, stderr }),
      (error) => error,
    );
    expect([ended.code, ended.stderr]).toEqual([code, message === '' ? '' : expect.stringContaining(message)]);
  },
  startLimitMs,
);

test(
  "the launcher exits with the agent's exit code and prints the error of the agent",
  async () => {
    fake.supersede();
    const { exited, output } = start('true');
    const code = await exited;
    expect([code, output()]).toEqual([0, '']);
    const bad = startAsPublicWorker({
      runId: 'run-bad',
      serverRoot: 'ftp://nowhere',
      runToken: 'token',
      program: [launcher],
      workspaceRoot: path.join(machine, 'workspaces'),
      home,
      temporaryFolder: path.join(machine, 'tmp'),
      env: { RUNYARD_DATA_DIR: path.join(machine, 'data') },
    });
    expect(await bad.exited).toBe(2);
    expect(bad.output()).toContain('--server-root-url must be an http:// or https:// URL');
  },
  startLimitMs,
);

test(
  'the launcher fails a run that has a container image, and reports the reason',
  async () => {
    const { exited } = startAsPublicWorker({
      runId: 'run-image',
      serverRoot: fake.url,
      runToken: fake.token,
      program: [launcher],
      workspaceRoot: path.join(machine, 'workspaces'),
      home,
      temporaryFolder: path.join(machine, 'tmp'),
      env: { RUNYARD_DATA_DIR: path.join(machine, 'data') },
      arguments: ['--docker-image', 'box:1'],
    });
    expect(await exited).toBe(1);
    expect(fake.finished).toMatchObject([
      { success: false, error: { code: 'environment_setup_failed', message: expect.stringContaining('box:1') } },
    ]);
  },
  startLimitMs,
);
