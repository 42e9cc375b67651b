/** Runs programs of a test in the real sandbox of a worker with tight limits, on a machine with secrets. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { startTestWorker, type TestWorker } from '../../packages/worker/test/worker.ts';
import { fakeAssignment } from '../fakes/worker-service.ts';

/** The content of files of the machine that no sandbox may read. */
export const secret = `host-secret-${process.pid}`;

export interface SandboxOutcome {
  readonly message: string;
  readonly failure_reason?: string | undefined;
  readonly exit_code?: number | undefined;
}

export interface SandboxProbe extends AsyncDisposable {
  readonly it: TestWorker;
  /** A folder of the machine with the secret in its file `key`. */
  readonly hostFolder: string;
  /** Runs the script in place of the agent, and returns how the execution failed. The script must not succeed. */
  outcome(script: string): Promise<SandboxOutcome>;
  /** Runs the script and returns its output. Makes the script exit with 1, because the worker reports the output only then. */
  attempt(script: string): Promise<string>;
  /** Runs JavaScript with the Node of the sandbox. */
  attemptInNode(script: string): Promise<string>;
}

export async function openSandboxProbe(): Promise<SandboxProbe> {
  const hostFolder = await mkdtemp(path.join(os.tmpdir(), 'runyard-host-'));
  await writeFile(path.join(hostFolder, 'key'), secret, { mode: 0o644 });
  const it = await startTestWorker({
    settings: {
      RUNYARD_SANDBOX_MEMORY_MB: '256',
      RUNYARD_SANDBOX_PROCESSES: '64',
      RUNYARD_SANDBOX_TMP_MB: '16',
      RUNYARD_SANDBOX_DISK_MB: '64',
    },
  });
  await writeFile(path.join(it.dataDir, 'bootstrap-key'), secret, { mode: 0o644 });
  let number = 0;
  const outcome = async (script: string): Promise<SandboxOutcome> => {
    const id = `probe-${++number}`;
    it.service.send(fakeAssignment(id, ['--fixture', 'sh', script]));
    return it.service.waitFor('task_failed', (data) => data.execution_id === id);
  };
  const attempt = async (script: string): Promise<string> => {
    const { message } = await outcome(`{ ${script}\n} 2>&1; exit 1`);
    return message.slice(message.indexOf('\n', message.indexOf('\n') + 1) + 1);
  };
  return {
    it,
    hostFolder,
    outcome,
    attempt,
    attemptInNode: (script) => attempt(`cat >p.mjs <<'END'\n${script}\nEND\nnode p.mjs`),
    [Symbol.asyncDispose]: async () => {
      await it[Symbol.asyncDispose]();
      await rm(hostFolder, { recursive: true });
    },
  };
}
