/**
 * Starts the agent program as the direct backend of `oz-agent-worker` does (github.com/warpdotdev/oz-agent-worker,
 * `internal/worker/direct.go`): directly on the machine, in a folder named after the run. The agent gets `HOME`, `TMPDIR` and `PATH`
 * of the machine's user and the variables of the assignment, but no pipe. A cancellation sends SIGKILL only to the agent's process,
 * not to its children.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdirSync, openSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';

export interface FakePublicWorkerRun {
  readonly runId: string;
  readonly serverRoot: string;
  readonly runToken: string;
  /** The agent program and its arguments before `agent run`, from the worker's setting `backend.direct.oz_path`. */
  readonly program: readonly [string, ...string[]];
  /** The worker's setting `backend.direct.workspace_root`: the folder in which each run gets a folder of its own. */
  readonly workspaceRoot: string;
  /** The worker's setting `backend.direct.target_dir`: the folder to use instead of a new folder for the run. */
  readonly targetDir?: string;
  /** Home folder of the machine's user. */
  readonly home: string;
  readonly temporaryFolder: string;
  /** The worker's setting `backend.direct.environment`: additional environment variables of the agent. */
  readonly env?: Readonly<Record<string, string>>;
  /** Arguments that the service adds. */
  readonly arguments?: readonly string[];
}

export interface FakePublicWorkerAgent {
  readonly child: ChildProcess;
  readonly cwd: string;
  /** Exit code of the agent, or null if a signal ended the agent. */
  readonly exited: Promise<number | null>;
  /** Output of the program so far. */
  output(): string;
}

export function startAsPublicWorker(run: FakePublicWorkerRun): FakePublicWorkerAgent {
  const cwd = run.targetDir ?? path.join(run.workspaceRoot, run.runId);
  mkdirSync(cwd, { recursive: true, mode: 0o700 });
  // Like the real worker, create the file to which setup commands can write variables.
  writeFileSync(path.join(cwd, 'oz-env-1234'), '', { mode: 0o600 });
  const printed = path.join(run.temporaryFolder, `${run.runId}.output`);
  const output = openSync(printed, 'a');
  const [program, ...first] = run.program;
  const child = spawn(
    program,
    [
      ...first,
      ...['agent', 'run', '--share', 'team:edit', '--task-id', run.runId, '--sandboxed'],
      ...['--server-root-url', run.serverRoot, '--computer-use', ...(run.arguments ?? []), '--idle-on-complete'],
    ],
    {
      cwd,
      env: {
        HOME: run.home,
        TMPDIR: run.temporaryFolder,
        PATH: '/usr/local/bin:/usr/bin:/bin',
        TASK_ID: run.runId,
        WARP_SERVER_ROOT_URL: run.serverRoot,
        GIT_CONFIG_GLOBAL: path.join(cwd, '.gitconfig'),
        RUNYARD_RUN_TOKEN: run.runToken,
        WARP_API_KEY: run.runToken,
        ...run.env,
      },
      stdio: ['ignore', output, output],
    },
  );
  const exited = new Promise<number | null>((resolve) => child.on('close', (code) => resolve(code)));
  return { child, cwd, exited, output: () => readFileSync(printed, 'utf8') };
}
