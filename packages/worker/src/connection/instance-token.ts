/** Tokens that prove to the service which worker process this is, and which earlier ones it replaces. */

import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { maxReplacedTokens } from '@runyard/contract/limits';
import type { WorkerHello } from '@runyard/contract/worker-protocol';
import type { Logger } from 'pino';

export interface InstanceTokens {
  /** Returns the tokens for a hello: of this process, and of the earlier processes of the folder, whose sandboxes are gone. */
  proof(): Pick<WorkerHello['data'], 'token' | 'replaced_tokens'>;
  /** Stores an issued token, for this process and the next one of the folder. */
  keep(token: string): void;
}

/** Opens the tokens of a worker's folder. The caller has proved that the sandboxes of earlier processes are gone. */
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
      // Written before any execution is claimed, so that after a crash the next process can prove that it replaces this one.
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

/** Returns no token if the file is missing or unreadable: executions of earlier processes then end with their leases. */
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
