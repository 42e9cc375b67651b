/** The tokens with which this process proves that it held, or replaces who held, the executions of the record. */

import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { maxReplacedTokens } from '@runyard/contract/limits';
import type { WorkerHello } from '@runyard/contract/worker-protocol';
import type { Logger } from 'pino';

export interface InstanceTokens {
  /** What a hello proves: this process, and those that held the folder before and whose sandboxes are gone. */
  proof(): Pick<WorkerHello['data'], 'token' | 'replaced_tokens'>;
  /** Keeps what the service issued, for this process and for the one that comes after it. */
  keep(token: string): void;
}

/** Opens the tokens of a worker's folder. The caller has proved that nothing is left of the earlier processes. */
export function openInstanceTokens(folder: string, log: Logger): InstanceTokens {
  const file = path.join(folder, 'instance-tokens');
  const earlier = readTokens(file, log);
  let own: string | undefined;
  return {
    proof: () => ({
      ...(own === undefined ? {} : { token: own }),
      ...(earlier.length > 0 ? { replaced_tokens: [...earlier] } : {}),
    }),
    keep(token) {
      own = token;
      // Before any execution is claimed, so that after a crash the next process can speak for it.
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

/** Returns none where there is no file yet, or it cannot be read: then the leases of the earlier processes' executions decide. */
function readTokens(file: string, log: Logger): string[] {
  try {
    return readFileSync(file, 'utf8')
      .split('\n')
      .filter((line) => line !== '')
      .slice(-maxReplacedTokens);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT')
      log.warn({ error: (error as Error).message }, `${file} could not be read: the worker proves no earlier process`);
    return [];
  }
}
