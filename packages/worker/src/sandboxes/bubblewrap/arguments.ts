import path from 'node:path';
import { harnessFolderInside } from '@runyard/contract/agent/harness-presets/presets';
import { initShell } from '../../runtime/agent-program.ts';
import { systemFolders } from '../../state/sandbox-places.ts';
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

/** The folders, sockets, limits and variables that the processes of one sandbox see. */
export interface SandboxView {
  readonly shared: readonly string[];
  readonly folders: SandboxFolders;
  /** True if the sandbox has its own Debian instead of the machine's programs. */
  readonly hasSystem?: boolean;
  readonly harnessDir?: string | undefined;
  readonly relaySocket?: string;
  /** Socket of the proxy through which the sandbox reaches the hosts that its environment allows. */
  readonly egressSocket?: string;
  /** Folder of the machine that the sandbox sees as /opt/runyard. */
  readonly runtime?: string;
  /** A folder of the machine to which the sandbox may write. Set only for the rehearsal, in which the agent stores its compiled code. */
  readonly writableCache?: { readonly from: string; readonly to: string };
  readonly limits: SandboxLimits;
  readonly env: Readonly<Record<string, string>>;
  /** True if bwrap must apply the filter of system calls that it reads from `filterDescriptor`. */
  readonly isFiltered: boolean;
}

/** Descriptor from which bwrap reads the filter of system calls. */
export const filterDescriptor = 5;

export const megabyte = 1024 * 1024;

/**
 * Returns the options of bwrap. The caller passes them to bwrap through a descriptor (`--args FD`), because every process of the machine
 * can read the argument list of bwrap. `--clearenv` is not used, because it would leave the worker's environment readable in
 * /proc/1/environ (containers/bubblewrap#725).
 *
 * `--as-pid-1` makes Runyard's init the first process of the sandbox. So bwrap itself reaps this process, and ends only when the
 * kernel has ended the whole pid namespace. With bwrap's own init, each run would leave a process that pid 1 of the machine must reap
 * (`bench/sandbox.md`).
 */
export function bubblewrapOptions(view: SandboxView): string[] {
  const { folders, limits } = view;
  return [
    ...['--unshare-all', '--unshare-user', '--disable-userns', '--die-with-parent', '--new-session', '--as-pid-1'],
    ...['--cap-drop', 'ALL', '--uid', String(insideUid), '--gid', String(insideUid), '--hostname', 'sandbox'],
    ...(view.hasSystem === true ? ownSystem(view) : view.shared),
    ...['--proc', '/proc', '--dev', '/dev'],
    ...['--perms', '1777', '--size', String(limits.tmpMb * megabyte), '--tmpfs', '/tmp'],
    ...['--perms', '1777', '--size', String(limits.tmpMb * megabyte), '--tmpfs', '/dev/shm'],
    ...['--bind', folders.workspace, inside.workspace, '--bind', folders.home, inside.home],
    ...(view.runtime === undefined ? [] : ['--ro-bind', view.runtime, inside.runtime]),
    ...(view.writableCache === undefined ? [] : ['--bind', view.writableCache.from, view.writableCache.to]),
    ...(view.relaySocket === undefined ? [] : ['--ro-bind', view.relaySocket, inside.relaySocket]),
    ...(view.egressSocket === undefined ? [] : ['--ro-bind', view.egressSocket, inside.egressSocket]),
    // A command could otherwise move the folder of the sockets, and put its own sockets in their place.
    ...(view.hasSystem === true ? ['--remount-ro', path.dirname(inside.relaySocket)] : []),
    // The root file system and /dev are made read-only, because they are in memory and have no size limit.
    ...['--remount-ro', '/dev', '--remount-ro', '/'],
    ...(view.isFiltered ? ['--seccomp', String(filterDescriptor)] : []),
    ...['--chdir', inside.workspace],
    ...Object.entries(view.env).flatMap(([name, value]) => ['--setenv', name, value]),
  ];
}

/**
 * Returns bwrap's options for the sandbox's own Debian. Each writable folder is mounted, so that no command can move it or put another one
 * in its place, and none contains a folder of Runyard.
 */
function ownSystem({ folders, limits, harnessDir }: SandboxView): string[] {
  return [
    ...systemFolders.flatMap((name) => ['--bind', path.join(folders.system, name), `/${name}`]),
    ...['bin', 'sbin', 'lib', 'lib64'].flatMap((name) => ['--symlink', `usr/${name}`, `/${name}`]),
    ...['/boot', '/media', '/mnt', '/root', '/srv', '/sys'].flatMap((folder) => ['--dir', folder]),
    ...['--perms', '755', '--size', String(limits.tmpMb * megabyte), '--tmpfs', '/run'],
    ...['--perms', '755', '--tmpfs', path.dirname(inside.relaySocket)],
    ...(harnessDir === undefined ? [] : ['--ro-bind-try', harnessDir, harnessFolderInside]),
  ];
}

/** Environment variable in which init gets the agent's command. Init removes the variable before it starts the agent. */
const commandVariable = 'RUNYARD_COMMAND';

/** Returns the environment variable with the command. Each word of the command is quoted for the shell. */
export function commandSetting(command: readonly string[]): Record<string, string> {
  const words = command.map((word) => `'${word.replaceAll("'", "'\\''")}'`);
  return { [commandVariable]: words.join(' ') };
}

/**
 * Descriptor from which the agent reads the run token. The agent inherits the descriptor through bwrap and init. The number has one
 * digit, because the shell of init supports no more.
 */
export const runTokenDescriptor = 4;

/**
 * Script of init, the first process of the sandbox. Init starts the agent, forwards SIGTERM to the agent, reaps orphans, and ends with
 * the exit code of the agent (128 + signal if a signal ended the agent). It is a shell script, because every machine has a shell.
 */
const initScript = [
  `eval "set -- $${commandVariable}"; unset ${commandVariable}`,
  'trap \'t=1; kill -TERM "$p" 2>/dev/null\' TERM',
  '"$@" & p=$!',
  `exec ${runTokenDescriptor}<&-`,
  'wait "$p"; s=$?',
  // If SIGTERM interrupts `wait`, `wait` returns 128 + 15 although the agent still runs. So init waits again. 127 means that an earlier
  // `wait` has already returned the agent's exit code.
  'while [ "$t" ]; do t=; wait "$p"; r=$?; [ "$r" = 127 ] || s=$r; done',
  'exit "$s"',
].join('\n');

/**
 * Limits that the kernel applies to each process or to all processes of a user. They are set inside the sandbox, so that processes outside
 * of the sandbox do not count toward a limit.
 */
export interface ProcessLimits {
  readonly nproc: number;
  readonly nofile: number;
  readonly fileBytes: number;
  /** Maximum private writable memory of each process. Set only if no cgroup limits the memory of all processes together. */
  readonly dataBytes?: number;
}

/**
 * Lowest useful `RLIMIT_DATA`, because Node does not start with half of it. `RLIMIT_AS` is not used, because it would have to be even
 * larger (`bench/sandbox.md`).
 */
export const leastDataBytes = 1024 * megabyte;

/**
 * Returns shell lines that set the limits. If a limit cannot be set, the lines end the shell with a message. The shell does this
 * itself, because the program `prlimit` would be one more program to start for each sandbox. POSIX defines only the option `-f` of
 * `ulimit`. The option for the number of processes is `-p` in dash and busybox, but `-u` in bash, which cannot set `-p`. The unit of
 * `-f` is 512 bytes in all three shells when they run as `sh`.
 */
function limitScript({ nproc, nofile, fileBytes, dataBytes }: ProcessLimits): string {
  const set = [`ulimit -n ${nofile}`, 'ulimit -c 0', `ulimit -f ${Math.ceil(fileBytes / 512)}`];
  if (dataBytes !== undefined) set.push(`ulimit -d ${Math.ceil(dataBytes / 1024)}`);
  set.push(`{ ulimit -p ${nproc} 2>/dev/null || ulimit -u ${nproc}; }`);
  return `${set.join(' && ')} || { echo 'ulimit: a limit of the sandbox could not be set' >&2; exit 126; }`;
}

/**
 * Returns the command that bwrap starts in every sandbox: a shell that sets the limits and then is init. The shell reads the agent's
 * command from its environment. `label` is an argument of this shell and also the process name of bwrap. So the worker can find init by the
 * label even if bwrap was killed and init still runs. `hasRuntime` is false for a sandbox without the agent's files, such as that of the probe.
 */
export function initCommand(label: string, limits: ProcessLimits, hasRuntime = true): string[] {
  return [
    hasRuntime ? `${inside.runtime}/${initShell}` : '/bin/sh',
    '-c',
    `${limitScript(limits)}\n${initScript}`,
    label,
  ];
}
