/**
 * The token by which the service recognises this worker. For the service, all processes that use the same data folder one after another
 * are the same worker.
 */

import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import type { WorkerHello } from '@runyard/contract/workers/worker-protocol';
import type { Logger } from 'pino';

export interface InstanceToken {
  /** Returns the members of a hello that contain the token. The service may have issued the token to an earlier process of the folder. */
  proof(): Pick<WorkerHello['data'], 'token'>;
  /** Stores a token that the service has issued, for this process and for the next process of the folder. */
  keep(token: string): void;
}

/**
 * Opens the token of a worker's folder. The caller holds the lock of the folder, has adopted the living sandboxes of earlier processes, and
 * has proved that the other sandboxes have ended. Only after this may the caller present itself as the same worker.
 */
export function openInstanceToken(folder: string, log: Logger): InstanceToken {
  const file = path.join(folder, 'instance-tokens');
  let own = readToken(file, log);
  return {
    proof: () => (own === undefined ? {} : { token: own }),
    keep(token) {
      own = token;
      // The token is on the disk before the worker claims an execution, so that after a crash the next process can prove that it is the
      // same worker.
      try {
        writeFileSync(`${file}.new`, `${token}\n`, { mode: 0o600, flush: true });
        renameSync(`${file}.new`, file);
      } catch (error) {
        log.warn(
          { error: (error as Error).message },
          `${file} could not be written: after a crash of this worker, its executions are given up only when their leases end`,
        );
      }
    },
  };
}

/**
 * Returns the stored token, or undefined if the file is missing or unreadable. Without a token, executions of earlier processes end only
 * when their leases end.
 */
function readToken(file: string, log: Logger): string | undefined {
  try {
    return readFileSync(file, 'utf8')
      .split('\n')
      .findLast((line) => line !== '');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT')
      log.warn(
        { error: (error as Error).message },
        `${file} could not be read: the worker does not continue an earlier process`,
      );
    return undefined;
  }
}
