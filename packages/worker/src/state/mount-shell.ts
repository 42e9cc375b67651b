/**
 * Runs `mount` and `umount` in shells that are kept for further commands. The reason: the start of a program copies the page tables of
 * the parent process. In a Node process, this takes much longer than in a shell, and blocks all other work of the process.
 */
import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import type { Socket } from 'node:net';

/**
 * Result of a command. `lost`: the shell ended before it reported the result. In this case, the command has ended too, but it is unknown
 * whether the command had an effect.
 */
export type CommandResult =
  | { readonly type: 'done' }
  | { readonly type: 'failed'; readonly status: number; readonly output: string }
  | { readonly type: 'lost' };

interface Shell {
  readonly pid: number | undefined;
  run(command: readonly string[], longestMs: number): Promise<CommandResult>;
  readonly hasEnded: () => boolean;
  end(): void;
}

/** Longest command. */
const longestCommandMs = 30_000;
/** Longest output of a command. */
const mostOutput = 64 * 1024;

/** Shells that wait for commands. At most two are kept, because often one disk is mounted while another disk is unmounted. */
const idle: Shell[] = [];
const mostIdle = 2;

/** Runs a command with an empty input. If it takes longer than `longestMs`, kills the command and returns `lost`. */
export async function runInShell(
  command: readonly string[],
  longestMs: number = longestCommandMs,
): Promise<CommandResult> {
  const shell = takeIdle() ?? startShell();
  const result = await shell.run(command, longestMs);
  if (idle.length < mostIdle && !shell.hasEnded()) idle.push(shell);
  else shell.end();
  return result;
}

function takeIdle(): Shell | undefined {
  for (;;) {
    const shell = idle.pop();
    if (shell?.hasEnded() !== true) return shell;
  }
}

/** Returns the pids of the shells that wait for a command. */
export const idleShells = (): number[] =>
  idle.flatMap(({ pid, hasEnded }) => (pid === undefined || hasEnded() ? [] : [pid]));

const quoted = (word: string): string => `'${word.replaceAll("'", "'\\''")}'`;

/**
 * Starts a shell in a separate process group, because a signal to the group of this process must not end the shell in the middle of a
 * mount. The shell ends when this process ends, because its input then closes.
 */
function startShell(): Shell {
  const child = spawn('/bin/sh', [], {
    cwd: '/',
    detached: true,
    env: { PATH: '/usr/sbin:/usr/bin:/sbin:/bin', LC_ALL: 'C' },
    stdio: ['pipe', 'pipe', 'ignore'],
  });
  /** The shell prints this mark before the result of a command. The mark is random, so that the output of a command cannot contain it. */
  const mark = randomBytes(16).toString('hex');
  const ending = new RegExp(`${mark} (\\d+)\n$`);
  const streams = [child.stdin, child.stdout] as unknown as readonly Socket[];
  let output = '';
  let report: ((result: CommandResult) => void) | undefined;
  let hasEnded = child.pid === undefined;

  const settle = (result: CommandResult): void => {
    output = '';
    report?.(result);
    report = undefined;
  };
  const kill = (): void => {
    hasEnded = true;
    try {
      if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL');
    } catch {
      // Every process of the group has ended.
    }
  };
  const hold = (isBusy: boolean): void => {
    for (const each of [child, ...streams]) isBusy ? each.ref() : each.unref();
  };
  child.on('error', () => {});
  child.on('exit', () => {
    hasEnded = true;
  });
  // The event `close` comes when no process has the output open any more. So all processes of the command have ended.
  child.on('close', () => settle({ type: 'lost' }));
  child.stdin.on('error', () => {});
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    output += text;
    const end = ending.exec(output);
    if (end === null) {
      if (output.length > mostOutput) kill();
      return;
    }
    const status = Number(end[1]);
    settle(status === 0 ? { type: 'done' } : { type: 'failed', status, output: output.slice(0, end.index).trim() });
  });
  hold(false);

  return {
    pid: child.pid,
    hasEnded: () => hasEnded,
    end: () => void child.stdin.end(),
    async run(command, longestMs) {
      hold(true);
      const late = setTimeout(kill, longestMs);
      const result = await new Promise<CommandResult>((resolve) => {
        report = resolve;
        child.stdin.write(`${command.map(quoted).join(' ')} </dev/null 2>&1; echo ${mark} $?\n`);
      });
      clearTimeout(late);
      hold(false);
      return result;
    },
  };
}
