import type { SandboxFolders } from '../folders.ts';
import type { SandboxLimits } from '../sandbox.ts';
import { insideUid } from './filesystem.ts';

/** Where things are inside a sandbox. */
export const inside = {
  workspace: '/workspace',
  home: '/home/agent',
  relaySocket: '/run/runyard/relay.sock',
  runtime: '/opt/runyard',
} as const;

/** What one sandbox sees beside what all share. */
export interface SandboxView {
  readonly shared: readonly string[];
  readonly folders: SandboxFolders;
  readonly relaySocket?: string;
  /** Host folder that is /opt/runyard. */
  readonly runtime?: string;
  /** Set only while the runtime is built: the compile cache may be written. */
  readonly writableCache?: { readonly from: string; readonly to: string };
  readonly limits: SandboxLimits;
  readonly env: Readonly<Record<string, string>>;
}

const megabyte = 1024 * 1024;

/**
 * Options of bwrap, to be given by `--args FD`: whatever stands in the real argument list every process of the machine can
 * read, and `--clearenv` would leave our environment readable in /proc/1/environ (containers/bubblewrap#725).
 *
 * `--as-pid-1`: our own init is the first process, so bwrap reaps it and ends only when the kernel has ended everything in the
 * pid namespace; with bwrap's own init, each run leaves a process to the machine's pid 1 (`bench/sandbox.md`).
 */
export function bubblewrapOptions(view: SandboxView): string[] {
  const { folders, limits } = view;
  return [
    ...['--unshare-all', '--unshare-user', '--disable-userns', '--die-with-parent', '--new-session', '--as-pid-1'],
    ...['--cap-drop', 'ALL', '--uid', String(insideUid), '--gid', String(insideUid), '--hostname', 'sandbox'],
    ...view.shared,
    ...['--proc', '/proc', '--dev', '/dev'],
    ...['--perms', '1777', '--size', String(limits.tmpMb * megabyte), '--tmpfs', '/tmp'],
    ...['--perms', '1777', '--size', String(limits.tmpMb * megabyte), '--tmpfs', '/dev/shm'],
    ...['--bind', folders.workspace, inside.workspace, '--bind', folders.home, inside.home],
    ...(view.runtime === undefined ? [] : ['--ro-bind', view.runtime, inside.runtime]),
    ...(view.writableCache === undefined ? [] : ['--bind', view.writableCache.from, view.writableCache.to]),
    ...(view.relaySocket === undefined ? [] : ['--ro-bind', view.relaySocket, inside.relaySocket]),
    // The root and /dev are in memory: without this they could be filled without a limit of their own.
    ...['--remount-ro', '/dev', '--remount-ro', '/'],
    ...['--chdir', inside.workspace],
    ...Object.entries(view.env).flatMap(([name, value]) => ['--setenv', name, value]),
  ];
}

/** Variable that brings the agent's command to init; gone from the environment before the agent starts. */
const commandVariable = 'RUNYARD_COMMAND';

/** The command as the value of a variable, each word quoted for the shell. */
export function commandSetting(command: readonly string[]): Record<string, string> {
  const words = command.map((word) => `'${word.replaceAll("'", "'\\''")}'`);
  return { [commandVariable]: words.join(' ') };
}

/** Descriptor of the agent that the run token can be read from. It goes through bwrap and init; the shell knows digits only. */
export const runTokenDescriptor = 4;

/**
 * First process of the sandbox: starts the agent, passes SIGTERM on to it, reaps what is orphaned, and ends with the agent's
 * exit code (128 + signal). A shell, because every machine has one.
 */
const initScript = [
  `eval "set -- $${commandVariable}"; unset ${commandVariable}`,
  'trap \'t=1; kill -TERM "$p" 2>/dev/null\' TERM',
  '"$@" & p=$!',
  `exec ${runTokenDescriptor}<&-`,
  'wait "$p"; s=$?',
  // A wait that the signal interrupted says 128 + 15 although the agent goes on; 127: it was over already.
  'while [ "$t" ]; do t=; wait "$p"; r=$?; [ "$r" = 127 ] || s=$r; done',
  'exit "$s"',
].join('\n');

/** Limits that the kernel keeps per process or per user, set inside so that only the sandbox's own processes count. */
export interface ProcessLimits {
  readonly nproc: number;
  readonly nofile: number;
  readonly fileBytes: number;
  /** Private writable memory of each process; only where no cgroup limits them together. */
  readonly dataBytes?: number;
}

/** Node does not start with half of it, and would need still more address space (`bench/sandbox.md`). */
export const leastDataBytes = 1024 * megabyte;

/**
 * Command of every sandbox: sets the limits and goes on as init, which finds the agent's command in its environment. `label`
 * is in its arguments, so that init is found where bwrap, whose name is the label, was killed before it.
 */
export function initCommand(label: string, limits: ProcessLimits): string[] {
  const set = [`--nproc=${limits.nproc}`, `--nofile=${limits.nofile}`, '--core=0', `--fsize=${limits.fileBytes}`];
  if (limits.dataBytes !== undefined) set.push(`--data=${limits.dataBytes}`);
  return ['/usr/bin/prlimit', ...set, '/bin/sh', '-c', initScript, label];
}
