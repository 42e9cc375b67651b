import type { Gvisor } from './find-gvisor.ts';

/**
 * Paths of runsc, the program of gVisor, and of its files in the outer bubblewrap sandbox. The gVisor container sees none of these files.
 */
export const outside = { runsc: '/run/runsc', bundle: '/run/bundle', state: '/run/state' } as const;

/**
 * Environment variable with the length of the container's specification. On descriptor 4, the specification comes first and then the run
 * token.
 */
export const specificationBytesVariable = 'RUNYARD_SPECIFICATION_BYTES';

/**
 * Script of the first process in the outer sandbox. It writes the specification into a file and starts the container, whose standard
 * input is the rest of descriptor 4. It forwards SIGTERM to the container's init, and ends with the exit code of the container.
 */
const runScript = [
  'umask 077',
  `head -c "$${specificationBytesVariable}" <&4 >${outside.bundle}/config.json`,
  'trap \'t=1; "$@" kill sandbox TERM 2>/dev/null\' TERM',
  `"$@" run --bundle ${outside.bundle} sandbox <&4 & p=$!`,
  'exec 4<&-',
  'wait "$p"; s=$?',
  'while [ "$t" ]; do t=; wait "$p"; r=$?; [ "$r" = 127 ] || s=$r; done',
  'exit "$s"',
].join('\n');

/**
 * Options of runsc. `--rootless`: root in the outer sandbox is the user of the run, who has rights only in the namespaces of that
 * sandbox. `--host-uds=open`: programs may connect to the Unix sockets that they see, which are the sockets of the relay and of the
 * egress proxy. They cannot make sockets that other sandboxes see. `--ignore-cgroups`: runsc makes no cgroup, because the outer
 * sandbox already has one.
 */
const options = ['--rootless', '--network=none', '--ignore-cgroups', '--host-uds=open', '--oci-seccomp'];

/** Threads that gVisor needs for its kernel and its file server. */
const ownThreads = 256;

/**
 * For one thread of the container, gVisor needs at most this number of threads of the machine (measured). With `ptrace`, each thread
 * of gVisor's kernel needs one thread for each process.
 */
const threadsPerThread: Readonly<Record<Gvisor['platform'], number>> = { systrap: 3, ptrace: 16 };

/** Returns how many processes and threads of the machine gVisor may need for a container with `processes` processes. */
export function hostProcesses({ platform }: Gvisor, processes: number): number {
  return threadsPerThread[platform] * processes + ownThreads;
}

/** Returns the command of an outer sandbox. `label` marks its first process. */
export function containerCommand({ platform }: Gvisor, label: string, nofile: number): string[] {
  const runsc = [outside.runsc, `--root=${outside.state}`, `--platform=${platform}`, ...options];
  return ['/usr/bin/prlimit', `--nofile=${nofile}`, '--core=0', '/bin/sh', '-c', runScript, label, ...runsc];
}
