import type { AgentTask } from '@runyard/contract/agent/agent-protocol';
import { delay } from '@runyard/system/backoff';
import type { SetupSteps } from '../reporting/setup-steps.ts';
import type { ServiceConnection } from '../service/connection.ts';
import { isRepeated, waitBeforeNext } from '../service/retry.ts';
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

/** After this number of downloads that were cut off, the archive counts as damaged. */
const maxCutOff = 5;

/**
 * Restores the folders of an earlier execution, as a step of the setup. If the archive is missing or damaged, empties the folders and
 * returns the reason. Repeats the download while the service or its blobs cannot be reached: without this, an outage of a second would
 * make the run continue without its files. The deadline of the setup limits the repetitions.
 */
export async function restoreWorkspace(archive: Archive, options: RestoreOptions): Promise<string | undefined> {
  const size = (archive.size_bytes / 1e6).toFixed(1);
  const ofRun = archive.run_id === undefined ? '' : ` of the run ${archive.run_id}`;
  const of = `as it was after turn ${archive.turn} of execution ${archive.execution_number}${ofRun} (${size} MB)`;
  try {
    await options.step('workspace', `restoring the workspace ${of}`, async (result) => {
      await fillRepeatedly(archive, options);
      result.name = `restored ${of}`;
    });
    return undefined;
  } catch (error) {
    options.signal.throwIfAborted();
    return (error as Error).message;
  }
}

async function fillRepeatedly(archive: Archive, options: RestoreOptions): Promise<void> {
  let cutOff = 0;
  for (let attempt = 1; ; attempt++) {
    try {
      return await fill(archive, options);
    } catch (error) {
      options.signal.throwIfAborted();
      for (const folder of options.folders) await clearFolder(folder.path);
      if (!(error instanceof Interrupted)) throw error;
      if (error.isCutOff) cutOff += 1;
      if (cutOff === maxCutOff) throw error;
      await delay(waitBeforeNext(attempt, error.retryAfter), options.signal);
    }
  }
}

/** The archive could not be downloaded. Another try may succeed. */
class Interrupted extends Error {
  readonly retryAfter: string | undefined;
  /** True: the answer began, but did not arrive completely. */
  readonly isCutOff: boolean;
  constructor(
    message: string,
    { retryAfter, isCutOff = false }: { retryAfter?: string | undefined; isCutOff?: boolean } = {},
  ) {
    super(message);
    this.retryAfter = retryAfter;
    this.isCutOff = isCutOff;
  }
}

async function fill(archive: Archive, { connection, folders, env, signal }: RestoreOptions): Promise<void> {
  const answer = await connection
    .open({ method: 'GET', path: archive.path, signal, idleTimeoutMs: 60_000 })
    .catch((error: Error) => {
      throw new Interrupted(error.message);
    });
  const { statusCode = 500 } = answer;
  if (statusCode !== 200) {
    answer.destroy();
    const message = `the service answered ${statusCode}`;
    throw isRepeated(statusCode)
      ? new Interrupted(message, { retryAfter: answer.headers['retry-after'] })
      : new Error(message);
  }
  try {
    await unpackFolders(answer, folders, { sha256: archive.sha256, env, signal });
  } catch (error) {
    throw answer.complete ? error : new Interrupted((error as Error).message, { isCutOff: true });
  }
}
