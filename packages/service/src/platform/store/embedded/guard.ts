/**
 * Stops a PostgreSQL server whose service died. The guard is a small shell script that waits on a pipe from the service. The kernel
 * closes the pipe when the service ends, even after kill -9. Then the script requests a fast shutdown (SIGINT, "Shutting Down the
 * Server" in the PostgreSQL manual). If this takes too long, the script requests an immediate shutdown, which loses no data either. A
 * later process may have the same process id as the server. So the script first compares the working directory of the process with the
 * data folder (`-ef`). The guard runs under the account of the server, because root in a container has no CAP_SYS_PTRACE and may not
 * read another user's /proc/PID/cwd.
 */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { type Account, runAs } from './account.ts';

const stopScript = `
pid=$1
here() { [ "/proc/$pid/cwd" -ef . ]; }
here || exit 0
kill -INT "$pid" 2>/dev/null
tenths=0
while here && [ "$tenths" -lt "$2" ]; do sleep 0.1; tenths=$((tenths + 1)); done
here || exit 0
kill -QUIT "$pid" 2>/dev/null
tenths=0
while here && [ "$tenths" -lt 50 ]; do sleep 0.1; tenths=$((tenths + 1)); done
here && kill -KILL "$pid" 2>/dev/null
exit 0`;

const guardScript = `trap '' INT TERM HUP\nread -r word\n${stopScript}`;

/** Time that a fast shutdown may take. It writes a checkpoint. */
export const fastShutdownMs = 20_000;

const environment = { PATH: '/usr/local/bin:/usr/bin:/bin' };

/**
 * Starts a guard for process `pid`, whose working directory is `folder`. When the stdin of the guard is closed, the guard stops the
 * process if it still runs, and ends.
 */
export function startGuard(pid: number, folder: string, account: Account): ChildProcess {
  return spawn('sh', ['-c', guardScript, 'runyard-guard', String(pid), String(fastShutdownMs / 100)], {
    ...runAs(account),
    cwd: folder,
    env: environment,
    // The guard has a separate session, so that Ctrl-C in the terminal does not end it.
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
  });
}

/** Stops process `pid` if its working directory is `folder`, and returns when it has ended. */
export function stopLeftover(pid: number, folder: string, account: Account, fastMs: number): void {
  spawnSync('sh', ['-c', stopScript, 'runyard-stop', String(pid), String(Math.ceil(fastMs / 100))], {
    ...runAs(account),
    cwd: folder,
    env: environment,
    stdio: 'ignore',
  });
}

/** Returns true if process `pid` runs and its working directory is `folder`. */
export function worksIn(pid: number, folder: string, account: Account): boolean {
  const result = spawnSync('sh', ['-c', '[ "/proc/$1/cwd" -ef . ]', 'runyard-look', String(pid)], {
    ...runAs(account),
    cwd: folder,
    env: environment,
    stdio: 'ignore',
  });
  return result.status === 0;
}
