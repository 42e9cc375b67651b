/**
 * Runs `mount` and `umount` in shells that are kept for further commands. Starting a program copies the page tables of the parent process.
 * This takes much longer in a Node process than in a shell, and blocks all other work of the Node process.
 */
import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import type { Socket } from 'node:net';

/**
 * Result of a command. `lost`: the shell ended before it reported the result. The command has ended too, and may or may not have taken
 * effect.
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

/** Shells that wait for commands. Two shells, because often one sandbox's disk is mounted while another's is unmounted. */
const idle: Shell[] = [];
const mostIdle = 2;

/** Runs a command with an empty input. Kills it after `longestMs`; the result is `lost` in this case. */
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

/** Returns the processes of the shells that wait. */
export const idleShells = (): number[] =>
  idle.flatMap(({ pid, hasEnded }) => (pid === undefined || hasEnded() ? [] : [pid]));

const quoted = (word: string): string => `'${word.replaceAll("'", "'\\''")}'`;

/**
 * Starts a shell in a separate process group, because a signal to this process's group must not end it in the middle of a mount. The shell
 * ends with this process.
 */
function startShell(): Shell {
  const child = spawn('/bin/sh', [], {
    cwd: '/',
    detached: true,
    env: { PATH: '/usr/sbin:/usr/bin:/sbin:/bin', LC_ALL: 'C' },
    stdio: ['pipe', 'pipe', 'ignore'],
  });
  /** A mark that the output of a command cannot contain by chance. */
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
  // The event `close` comes when no process has the output open. So every process of the command has ended.
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
