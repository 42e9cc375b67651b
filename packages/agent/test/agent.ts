import { type ChildProcess, spawn } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Writable } from 'node:stream';
import type { FakeHarnessSupport } from '../../../test/fakes/harness-support.ts';
import { agentProgram } from '../../../test/support/agent-program.ts';
import { compiledCode } from '../../../test/support/compiled-code.ts';
import { keepCodeVariable } from '../../worker/src/runtime/bundle.ts';

export interface TestAgent {
  child: ChildProcess;
  workspace: string;
  /** Exit code, or 128 + signal number; null if a signal ended the process. */
  exited: Promise<number | null>;
  stderr: () => string;
  startedAt: number;
}

/** The program that all tests start. Each started agent stores its newly compiled code for later agents. */
const main = await agentProgram();

/** Starts the agent program as a worker does: as a real process in a separate workspace. */
export function startTestAgent(
  fake: FakeHarnessSupport,
  options: { env?: Record<string, string>; workspace?: string } = {},
): TestAgent {
  const workspace = options.workspace ?? testFolder();
  const bin = testBin(workspace);
  const child = spawn(
    process.execPath,
    [
      // The same option as in a sandbox (`agent-program.ts`): with fewer threads, the agent takes less processor time.
      '--v8-pool-size=1',
      main,
      'agent',
      'run',
      '--share',
      'team:edit',
      '--task-id',
      'run-1',
      '--sandboxed',
      '--server-root-url',
      fake.url,
      '--idle-on-complete',
      '0s',
    ],
    {
      cwd: workspace,
      env: {
        PATH: `${bin}:${process.env.PATH}`,
        HOME: workspace,
        LANG: 'C.UTF-8',
        ...compiledCode(),
        TASK_ID: 'run-1',
        RUNYARD_RUN_TOKEN_FD: '4',
        RUNYARD_RUN_FOLDERS: 'own',
        [keepCodeVariable]: '1',
        ...(fake.socketPath === undefined ? {} : { RUNYARD_RELAY_SOCKET: fake.socketPath }),
        ...options.env,
      },
      stdio: ['ignore', 'ignore', 'pipe', 'ignore', 'pipe'],
    },
  );
  const tokenPipe = child.stdio[4] as Writable;
  // Ignore a broken pipe. It means that the agent has ended early, and the exit code of the agent shows the reason.
  tokenPipe.on('error', () => {});
  tokenPipe.end(fake.token);
  let stderr = '';
  child.stderr?.setEncoding('utf8').on('data', (chunk: string) => {
    stderr += chunk;
  });
  const exited = new Promise<number | null>((resolve) => child.on('close', (code) => resolve(code)));
  return { child, workspace, exited, stderr: () => stderr, startedAt: performance.now() };
}

/** Creates a folder for a test. The folder is removed with the other temporary files when all tests have ended. */
export function testFolder(): string {
  return mkdtempSync(join(tmpdir(), 'runyard-agent-test-'));
}

/** Creates the agent's commands in a folder for the PATH, as in a sandbox. */
function testBin(workspace: string): string {
  const bin = join(workspace, '.bin');
  mkdirSync(bin, { recursive: true });
  // The agent removes these variables from the environment of its commands. Without these variables, each command in the tests would
  // compile all of its modules.
  const cache = Object.entries({ ...compiledCode(), [keepCodeVariable]: '1' })
    .map(([name, folder]) => `export ${name}='${folder}'\n`)
    .join('');
  for (const name of ['report-artifact', 'child-run', 'pull-request', 'github-answer']) {
    const shim = join(bin, name);
    writeFileSync(shim, `#!/bin/sh\n${cache}exec '${process.execPath}' '${main}' ${name} "$@"\n`);
    chmodSync(shim, 0o755);
  }
  return bin;
}

/** Returns true if the process runs and is not a zombie. */
export function isRunning(pid: number): boolean {
  try {
    return !/^\d+ \(.*\) Z/.test(readFileSync(`/proc/${pid}/stat`, 'utf8'));
  } catch {
    return false;
  }
}

/** Resolves when the condition is true; rejects after a minute. */
export async function eventually(condition: () => boolean): Promise<void> {
  for (let tries = 0; !condition(); tries++) {
    if (tries > 6000) throw new Error('the condition did not come true');
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}
