import type { SandboxFolders } from '../folders.ts';
import type { SandboxLimits } from '../limits.ts';
import { insideUid } from './filesystem.ts';

/** Paths inside a sandbox. */
export const inside = {
  workspace: '/workspace',
  home: '/home/agent',
  relaySocket: '/run/runyard/relay.sock',
  egressSocket: '/run/runyard/egress.sock',
  runtime: '/opt/runyard',
} as const;

/** The view of one sandbox. */
export interface SandboxView {
  readonly shared: readonly string[];
  readonly folders: SandboxFolders;
  readonly relaySocket?: string;
  /** Socket of the proxy to the hosts that the environment allows. */
  readonly egressSocket?: string;
  /** Host folder that is /opt/runyard. */
  readonly runtime?: string;
  /** Set only during the rehearsal, which writes the compiled code. */
  readonly writableCache?: { readonly from: string; readonly to: string };
  readonly limits: SandboxLimits;
  readonly env: Readonly<Record<string, string>>;
  /** True: bwrap reads a filter of system calls from `filterDescriptor`. */
  readonly isFiltered: boolean;
}

/** Descriptor from which bwrap reads the filter of system calls. */
export const filterDescriptor = 5;

const megabyte = 1024 * 1024;

/**
 * Returns bwrap's options. They are passed with `--args FD`, because every process of the machine can read the real argument list.
 * `--clearenv` is not used, because it would leave the worker's environment readable in /proc/1/environ (containers/bubblewrap#725).
 *
 * `--as-pid-1` makes Runyard's init the first process, so that bwrap reaps it and ends only when the kernel has ended the whole pid
 * namespace. With bwrap's own init, each run would leave a process to the machine's pid 1 (`bench/sandbox.md`).
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
    ...(view.egressSocket === undefined ? [] : ['--ro-bind', view.egressSocket, inside.egressSocket]),
    // The root and /dev are in memory and have no size limit.
    ...['--remount-ro', '/dev', '--remount-ro', '/'],
    ...(view.isFiltered ? ['--seccomp', String(filterDescriptor)] : []),
    ...['--chdir', inside.workspace],
    ...Object.entries(view.env).flatMap(([name, value]) => ['--setenv', name, value]),
  ];
}

/** Variable that holds the agent's command for init. Init removes it before it starts the agent. */
const commandVariable = 'RUNYARD_COMMAND';

/** Returns the variable that holds the command, each word quoted for the shell. */
export function commandSetting(command: readonly string[]): Record<string, string> {
  const words = command.map((word) => `'${word.replaceAll("'", "'\\''")}'`);
  return { [commandVariable]: words.join(' ') };
}

/** Descriptor from which the agent reads the run token. It passes through bwrap and init; init's shell supports only single digits. */
export const runTokenDescriptor = 4;

/**
 * First process of the sandbox: starts the agent, forwards SIGTERM to it, reaps orphans, and exits with the agent's exit code
 * (128 + signal). It is a shell script, because a shell exists on every machine.
 */
const initScript = [
  `eval "set -- $${commandVariable}"; unset ${commandVariable}`,
  'trap \'t=1; kill -TERM "$p" 2>/dev/null\' TERM',
  '"$@" & p=$!',
  `exec ${runTokenDescriptor}<&-`,
  'wait "$p"; s=$?',
  // If the signal interrupts `wait`, `wait` returns 128 + 15 although the agent still runs. 127 means that the agent was already reaped.
  'while [ "$t" ]; do t=; wait "$p"; r=$?; [ "$r" = 127 ] || s=$r; done',
  'exit "$s"',
].join('\n');

/**
 * Limits that the kernel counts per process or per user. The limits are set inside the sandbox, so that only the sandbox's processes count.
 */
export interface ProcessLimits {
  readonly nproc: number;
  readonly nofile: number;
  readonly fileBytes: number;
  /** Private writable memory of each process. Set only if no cgroup limits their memory together. */
  readonly dataBytes?: number;
}

/** Least `RLIMIT_DATA`: Node does not start with half of this limit. `RLIMIT_AS` would have to be larger still (`bench/sandbox.md`). */
export const leastDataBytes = 1024 * megabyte;

/**
 * Returns the lines of a shell that set the limits, and end the shell with a message if one cannot be set. A program for this (`prlimit`)
 * would be one more start for each sandbox. POSIX defines only `-f`. The option for the number of processes is `-p` in dash and busybox; in
 * bash it is `-u`, and bash cannot set `-p`. The unit of `-f` is 512 bytes in all three shells when they run as `sh`.
 */
function limitScript({ nproc, nofile, fileBytes, dataBytes }: ProcessLimits): string {
  const set = [`ulimit -n ${nofile}`, 'ulimit -c 0', `ulimit -f ${Math.ceil(fileBytes / 512)}`];
  if (dataBytes !== undefined) set.push(`ulimit -d ${Math.ceil(dataBytes / 1024)}`);
  set.push(`{ ulimit -p ${nproc} 2>/dev/null || ulimit -u ${nproc}; }`);
  return `${set.join(' && ')} || { echo 'ulimit: a limit of the sandbox could not be set' >&2; exit 126; }`;
}

/**
 * Returns the command of every sandbox: a shell that sets the limits and then acts as init. The shell reads the agent's command from its
 * environment. `label` is an argument of the shell and also the name of bwrap. So init can be found even if bwrap was killed first.
 */
export function initCommand(label: string, limits: ProcessLimits): string[] {
  return ['/bin/sh', '-c', `${limitScript(limits)}\n${initScript}`, label];
}
