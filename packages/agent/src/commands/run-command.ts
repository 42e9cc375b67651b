import { type ChildProcess, spawn } from 'node:child_process';
import type { Socket } from 'node:net';
import { constants } from 'node:os';
import { monotonicMs } from '../builtin-modules.ts';
import { newId } from '../new-id.ts';
import { liveOutput } from './live-output.ts';
import {
  halfWindowBytes,
  type LeftOut,
  type OutputWindow,
  outputWindow,
  roomForMarks,
  withoutNul,
} from './output-window.ts';
import { killMarked, signalGroup } from './processes.ts';

export interface CommandOptions {
  argv: readonly [string, ...string[]];
  cwd: string;
  env: Readonly<Record<string, string | undefined>>;
  /** Called with the head of the output while it arrives, and with the remaining text of `CommandResult.output` when the output ends. */
  onOutput?: (text: string) => void;
  /** Called with each piece of the whole output when it arrives. */
  onText?: (text: string) => void;
  /** Called with the bytes of each piece of the whole output. */
  onBytes?: (chunk: Buffer) => void;
  /** Called after each chunk. If it returns a promise, the agent reads no more output of the command until the promise resolves. */
  backpressure?: () => Promise<void> | undefined;
  signal?: AbortSignal | undefined;
  timeoutMs?: number | undefined;
  /** True: kills the processes that are left when the command has exited. */
  endsGroup?: true;
  /** Time between SIGTERM and SIGKILL; default 1 s. */
  graceMs?: number | undefined;
}

export interface CommandResult {
  /** `not_started`: the program could not be started, and `output` says why. */
  outcome: 'exited' | 'timed_out' | 'aborted' | 'not_started';
  /** 128 + the signal's number if a signal ended the command; 127 if the command was not started. */
  exitCode: number;
  signal: string | undefined;
  output: string;
  outputBytes: number;
  /** True: `output` contains only the head and the tail of the output. */
  truncated: boolean;
  /** The amount of output that `output` omits. */
  leftOut: LeftOut;
  durationMs: number;
  /** UID of the artifact with the whole output; absent: there is none. */
  outputArtifact?: string;
}

/**
 * After the exit of a command, reading ends when no output has come for `drainQuietMs`, and at the latest after `drainMaxMs`. It
 * cannot wait for the end of the pipe, because a background process may keep the pipe open. All output of the command itself is in the
 * pipe (at most 64 KB) when the command exits.
 */
const drainQuietMs = 100;
const drainMaxMs = 1_000;
const commandMarker = 'RUNYARD_COMMAND_ID';
/**
 * Maximum size of one argument of a program: MAX_ARG_STRLEN of Linux, minus the closing NUL (execve(2), "Limits on size of arguments and
 * environment").
 */
const maxArgumentBytes = 128 * 1024 - 1;
const notStarted = { outcome: 'not_started', exitCode: 127, signal: undefined } as const;

/**
 * Runs a command in a separate process group. The stdin of the command is closed. Stdout and stderr share one pipe, so that their order is
 * kept. Takes constant memory for output of any size. On abort or timeout, the group gets SIGTERM. After `graceMs`, the group gets SIGKILL,
 * and so do processes that left the group. A background process of a command keeps running until the agent exits.
 */
export async function runCommand(options: CommandOptions): Promise<CommandResult> {
  const started = monotonicMs();
  // This window is smaller than the window of an action, because the action adds a line about the omitted part.
  const window = outputWindow(halfWindowBytes, halfWindowBytes - 2 * roomForMarks);
  const commandId = newId();
  options.signal?.throwIfAborted();
  const child = spawnShell(options, commandId);
  if (child instanceof Error) {
    const output = `could not be started: ${child.message}\n`;
    const outputBytes = Buffer.byteLength(output);
    return {
      ...notStarted,
      output,
      outputBytes,
      truncated: false,
      leftOut: { bytes: 0, lines: 0 },
      durationMs: monotonicMs() - started,
    };
  }

  let ended: 'timed_out' | 'aborted' | undefined;
  let killTimer: NodeJS.Timeout | undefined;
  const end = (reason: 'timed_out' | 'aborted') => {
    if (ended !== undefined || child.pid === undefined) return;
    ended = reason;
    const pid = child.pid;
    signalGroup(pid, 'SIGTERM');
    killTimer = setTimeout(() => {
      signalGroup(pid, 'SIGKILL');
      killMarked(`${commandMarker}=${commandId}`);
    }, options.graceMs ?? 1_000);
  };
  const onAbort = () => end('aborted');
  options.signal?.addEventListener('abort', onAbort, { once: true });
  const timer = options.timeoutMs === undefined ? undefined : setTimeout(() => end('timed_out'), options.timeoutMs);

  try {
    const exit = await exitAndOutput(child, window, options);
    if ((ended !== undefined || options.endsGroup) && child.pid !== undefined) {
      signalGroup(child.pid, 'SIGKILL');
      killMarked(`${commandMarker}=${commandId}`);
    }
    const durationMs = monotonicMs() - started;
    const common = {
      output: window.text(),
      outputBytes: exit.bytes,
      truncated: window.truncated,
      leftOut: window.leftOut,
      durationMs,
    };
    if ('error' in exit) {
      const output = `${common.output}could not be started: ${exit.error.message}\n`;
      return { ...common, ...notStarted, output };
    }
    return { ...common, outcome: ended ?? 'exited', exitCode: exit.exitCode, signal: exit.signal };
  } finally {
    clearTimeout(timer);
    clearTimeout(killTimer);
    options.signal?.removeEventListener('abort', onAbort);
  }
}

/**
 * Starts the command. Returns an error if the command cannot be started, for example if `spawn` throws because the kernel refuses the
 * arguments.
 */
function spawnShell({ argv, cwd, env }: CommandOptions, commandId: string): ChildProcess | Error {
  if (argv.some((argument) => argument.includes('\u0000')))
    return new Error('it has a NUL character, which no argument of a program can have');
  const longest = Math.max(...argv.map((argument) => Buffer.byteLength(argument)));
  if (longest > maxArgumentBytes) {
    return new Error(
      `it has ${longest} bytes. The longest that can be passed is ${maxArgumentBytes} bytes: write it into a file first and run that`,
    );
  }
  try {
    return spawn('/bin/sh', ['-c', 'exec "$@" 2>&1', 'sh', ...argv], {
      cwd,
      env: { ...env, [commandMarker]: commandId },
      stdio: ['ignore', 'pipe', 'ignore'],
      detached: true,
    });
  } catch (error) {
    return error instanceof Error ? error : new Error(String(error));
  }
}

/** `bytes`: the size of the whole output. */
type Exit = { bytes: number } & ({ exitCode: number; signal: string | undefined } | { error: Error });

function exitAndOutput(child: ChildProcess, window: OutputWindow, options: CommandOptions): Promise<Exit> {
  return new Promise((resolve) => {
    const live = liveOutput(window, options.onOutput ?? (() => {}));
    // Decode the bytes before the window limits the size, because invalid bytes and NUL become U+FFFD, which has three bytes.
    const decoder = new TextDecoder('utf-8', { ignoreBOM: true });
    let bytes = 0;
    const stdout = child.stdout as Socket | null;
    let exit: { exitCode: number; signal: string | undefined } | { error: Error } | undefined;
    let lastByteAt = 0;
    const push = (text: string) => {
      live.push(text);
      options.onText?.(text);
    };
    const onData = (chunk: Buffer) => {
      lastByteAt = monotonicMs();
      bytes += chunk.length;
      options.onBytes?.(chunk);
      push(withoutNul(decoder.decode(chunk, { stream: true })));
      const room = options.backpressure?.();
      if (room === undefined) return;
      stdout?.pause();
      void room.then(() => stdout?.resume());
    };
    const finish = () => {
      if (exit === undefined) return;
      push(decoder.decode());
      live.end();
      stdout?.off('data', onData).off('close', finish);
      // Keeps reading and drops the output, so that a background server does not exit because of a broken pipe.
      stdout?.resume().unref();
      resolve({ ...exit, bytes });
    };
    stdout?.on('data', onData).on('close', finish);
    child.on('error', (error) => {
      exit ??= { error };
      finish();
    });
    child.on('exit', (code, signal) => {
      exit ??= {
        exitCode: code ?? 128 + (signal === null ? 0 : constants.signals[signal]),
        signal: signal ?? undefined,
      };
      if (stdout === null || stdout.closed) return finish();
      const exitedAt = monotonicMs();
      const check = () => {
        if (stdout.closed) return;
        const now = monotonicMs();
        const quiet = now - Math.max(lastByteAt, exitedAt) >= drainQuietMs || now - exitedAt >= drainMaxMs;
        if (quiet && !stdout.isPaused()) finish();
        else setTimeout(check, 20);
      };
      setTimeout(check, drainQuietMs);
    });
  });
}
