import type { AgentTask } from '@runyard/contract/agent/agent-protocol';
import type { SetupSteps } from '../reporting/setup-steps.ts';
import type { ServiceConnection } from '../service/connection.ts';
import type { ArchivedFolder } from './archived-folders.ts';
import { clearFolder } from './clear-folder.ts';
import { unpackFolders } from './unpack.ts';

type Archive = Extract<AgentTask['workspace'], { kind: 'archive' }>;

export interface RestoreOptions {
  connection: ServiceConnection;
  folders: readonly ArchivedFolder[];
  env: Readonly<Record<string, string | undefined>>;
  step: SetupSteps;
  signal: AbortSignal;
}

const tries = 3;

/**
 * Restores the folders of an earlier execution, as a step of the setup. If the restore fails, empties the folders and returns the reason.
 */
export async function restoreWorkspace(archive: Archive, options: RestoreOptions): Promise<string | undefined> {
  const { folders, signal } = options;
  const size = (archive.size_bytes / 1e6).toFixed(1);
  const ofRun = archive.run_id === undefined ? '' : ` of the run ${archive.run_id}`;
  const name = `restored as it was after turn ${archive.turn} of execution ${archive.execution_number}${ofRun} (${size} MB)`;
  for (let attempt = 1; ; attempt++) {
    try {
      await options.step('workspace', name, () => fill(archive, options));
      return undefined;
    } catch (error) {
      signal.throwIfAborted();
      for (const folder of folders) await clearFolder(folder.path);
      if (attempt === tries || !(error instanceof Interrupted)) return (error as Error).message;
    }
  }
}

/** The download broke off. Another try may succeed. */
class Interrupted extends Error {}

async function fill(archive: Archive, { connection, folders, env, signal }: RestoreOptions): Promise<void> {
  const answer = await connection
    .open({ method: 'GET', path: archive.path, signal, idleTimeoutMs: 60_000 })
    .catch((error: Error) => {
      throw new Interrupted(error.message);
    });
  if (answer.statusCode !== 200) {
    answer.destroy();
    const message = `the service answered ${answer.statusCode}`;
    throw (answer.statusCode ?? 500) < 500 ? new Error(message) : new Interrupted(message);
  }
  try {
    await unpackFolders(answer, folders, { sha256: archive.sha256, env, signal });
  } catch (error) {
    throw answer.complete ? error : new Interrupted((error as Error).message);
  }
}
