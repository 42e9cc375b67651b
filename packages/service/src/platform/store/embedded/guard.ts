/**
 * Stops a server whose service died. A small shell waits on a pipe that the service holds. The kernel closes the pipe when the service ends
 * in any way, kill -9 included. The shell then asks for a fast shutdown (SIGINT, "Shutting Down the Server" in the PostgreSQL manual). If
 * that takes too long, it asks for an immediate stop, which also loses no data. The working directory distinguishes the server from a
 * later process with the same id: `-ef` compares the folders themselves. The comparison needs the same uid: root in a container has no
 * CAP_SYS_PTRACE and
 * may not read another user's /proc/PID/cwd.
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

/** Time for a fast shutdown, which writes a checkpoint. */
export const fastShutdownMs = 20_000;

const environment = { PATH: '/usr/local/bin:/usr/bin:/bin' };

/**
 * Starts a guard for process `pid`, whose working directory is `folder`. The guard ends with that process, or when its stdin is closed.
 */
export function startGuard(pid: number, folder: string, account: Account): ChildProcess {
  return spawn('sh', ['-c', guardScript, 'runyard-guard', String(pid), String(fastShutdownMs / 100)], {
    ...runAs(account),
    cwd: folder,
    env: environment,
    // Uses a separate session, so that Ctrl-C in the terminal does not reach the shell.
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
