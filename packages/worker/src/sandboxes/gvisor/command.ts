import type { Gvisor } from './find-gvisor.ts';

/** Paths of runsc and its files in the outer sandbox. The container sees none of these files. */
export const outside = { runsc: '/run/runsc', bundle: '/run/bundle', state: '/run/state' } as const;

/** Variable with the length of the specification, which comes before the run token on descriptor 4. */
export const specificationBytesVariable = 'RUNYARD_SPECIFICATION_BYTES';

/**
 * First process of the outer sandbox: writes the specification, starts the container with the rest of descriptor 4 as its standard input,
 * forwards SIGTERM to the container's init, and exits with the container's exit code.
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
 * Options of runsc. `--rootless`: root in the outer sandbox is the run's own user, who has rights only in the namespaces of that sandbox.
 * `--host-uds=open`: programs may connect to sockets in the files that they see. These are the sockets of the relay and of the egress
 * proxy. Programs cannot make sockets that other sandboxes see. `--ignore-cgroups`: the outer sandbox is in its cgroup already.
 */
const options = ['--rootless', '--network=none', '--ignore-cgroups', '--host-uds=open', '--oci-seccomp'];

/** Threads of gVisor's kernel and of its file server. */
const ownThreads = 256;

/**
 * Most threads of the machine that one thread of the container needs, as measured. With `ptrace`, each thread of gVisor's kernel needs one
 * thread per process.
 */
const threadsPerThread: Readonly<Record<Gvisor['platform'], number>> = { systrap: 3, ptrace: 16 };

/** Returns how many processes and threads of the machine a container with `processes` processes may need. */
export function hostProcesses({ platform }: Gvisor, processes: number): number {
  return threadsPerThread[platform] * processes + ownThreads;
}

/** Returns the command of an outer sandbox. `label` marks its first process. */
export function containerCommand({ platform }: Gvisor, label: string, nofile: number): string[] {
  const runsc = [outside.runsc, `--root=${outside.state}`, `--platform=${platform}`, ...options];
  return ['/usr/bin/prlimit', `--nofile=${nofile}`, '--core=0', '/bin/sh', '-c', runScript, label, ...runsc];
}
