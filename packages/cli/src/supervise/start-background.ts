import { spawn } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { settingsTable } from '@runyard/contract/settings/settings';
import { type Claim, readClaim } from '../data-folder/claim.ts';
import { type DataFolder, root } from '../data-folder/installation.ts';
import { interruptedCode } from '../exits/exit-codes.ts';
import { Failure } from '../exits/failure.ts';
import { childEnvironment } from './child-environment.ts';
import { readLogTail, sizeOf } from './log-file.ts';
import { makeFolders } from './make-folders.ts';

/** Longest wait for the start of the service and the worker. It is longer than the supervisor's own time limit for the start. */
const patienceMs = 120_000;

/**
 * Starts the service, the database and the worker in the background. The programs continue when this process has ended and its
 * terminal is closed. If another process starts the programs at the same time, waits for that process. An aborted `signal` stops the
 * programs that this function has started.
 * @throws Failure with the last log lines of the program that did not start
 */
export async function startInBackground(
  folder: DataFolder,
  env: Readonly<Record<string, string | undefined>>,
  { signal, report }: { readonly signal: AbortSignal; readonly report: (message: string) => void },
): Promise<Claim & { origin: string }> {
  makeFolders(folder);
  const logFile = path.join(folder.logs, 'supervisor.log');
  const logStart = sizeOf(logFile);
  const log = openSync(logFile, 'a', 0o600);
  // The supervisor has a separate session and no descriptor of this process. So it survives when the terminal or a pipe of this process
  // closes.
  const child = spawn(process.execPath, [fileURLToPath(new URL('background-main.ts', import.meta.url))], {
    env: supervisorEnvironment(folder, env),
    cwd: root,
    stdio: ['ignore', log, log],
    detached: true,
  });
  closeSync(log);
  let ended = false;
  child.once('exit', () => {
    ended = true;
  });
  child.once('error', () => {
    ended = true;
  });
  child.unref();

  const deadline = performance.now() + patienceMs;
  for (;;) {
    const claim = readClaim(folder.supervisorFile);
    if (signal.aborted) {
      if (claim && claim.pid !== child.pid)
        throw new Failure(`${signal.reason}: another process is starting Runyard here and continues`, interruptedCode);
      report(`${signal.reason}: stopping what was started ...`);
      child.kill('SIGTERM');
      while (!ended) await sleep(25);
      throw new Failure('stopped; no run was created', interruptedCode);
    }
    if (claim?.origin) return { ...claim, origin: claim.origin };
    // Fails only if the data folder has no claim. If it has a claim, the started process has ended because another command started a
    // supervisor first.
    if (ended && !claim) {
      throw new Failure(
        `runyard did not start in the background:\n${readLogTail(logFile, logStart, 20)}\n(log: ${logFile})`,
      );
    }
    if (performance.now() > deadline)
      throw new Failure(`runyard is still starting after ${patienceMs / 1000} s; see ${folder.logs}`);
    await sleep(25);
  }
}

/** Returns the environment variables that the service and the worker need, without other variables of the user's shell. */
function supervisorEnvironment(
  folder: DataFolder,
  env: Readonly<Record<string, string | undefined>>,
): Record<string, string> {
  const result = {
    ...childEnvironment('worker', env, {}),
    ...childEnvironment('service', env, {}),
    RUNYARD_DATA_DIR: folder.path,
  };
  for (const [name, value] of Object.entries(env)) {
    if (name in settingsTable && value && !(name in result)) Object.assign(result, { [name]: value });
  }
  return result;
}
