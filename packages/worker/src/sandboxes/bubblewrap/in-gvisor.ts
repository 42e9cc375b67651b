import { outside, specificationBytesVariable } from '../gvisor/command.ts';
import { containerSpecification } from '../gvisor/container.ts';
import type { Gvisor } from '../gvisor/find-gvisor.ts';
import { inside, type ProcessLimits, type SandboxView } from './arguments.ts';
import { insideUid } from './filesystem.ts';

/** Folder in the outer bubblewrap sandbox in which the files of the gVisor container are mounted. */
const root = '/container';
const megabyte = 1024 * 1024;
/** Maximum memory for the files with the container's specification and the state of runsc, the program of gVisor. */
const bundleBytes = 8 * megabyte;

/** A program in a gVisor container. */
export interface ContainerStart {
  readonly gvisor: Gvisor;
  readonly view: Omit<SandboxView, 'env' | 'isFiltered'>;
  readonly command: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** Environment of gVisor itself. Its variable marks the processes of gVisor. */
  readonly outerEnv: Readonly<Record<string, string>>;
  readonly limits: Pick<ProcessLimits, 'nproc' | 'nofile' | 'fileBytes'>;
}

/**
 * Returns the options of bwrap for the outer sandbox around a gVisor container. Also returns the specification of the container, which
 * the first process of the outer sandbox reads before the run token. The outer sandbox is of the same kind as a sandbox without
 * gVisor. So a program that breaks out of gVisor's kernel is still confined, and all processes end together with bwrap. In its own
 * namespaces, the outer sandbox gives gVisor additional rights, which gVisor needs to confine itself further.
 */
export function containerStart(start: ContainerStart): { options: string[]; specification: string } {
  const { gvisor, view, limits } = start;
  const { folders } = view;
  const tmpBytes = view.limits.tmpMb * megabyte;
  const cache = view.writableCache;
  const specification = JSON.stringify(
    containerSpecification({
      root,
      command: start.command,
      env: start.env,
      workingFolder: inside.workspace,
      uid: insideUid,
      memory: ['/tmp', '/dev/shm'].map((path) => ({ path, bytes: tmpBytes })),
      writable: [inside.workspace, inside.home, ...(cache === undefined ? [] : [cache.to])].map((path) => ({ path })),
      limits,
    }),
  );
  const outerEnv = {
    PATH: '/usr/bin:/bin',
    [specificationBytesVariable]: String(Buffer.byteLength(specification)),
    ...start.outerEnv,
  };
  const options = [
    ...['--unshare-all', '--unshare-user', '--die-with-parent', '--new-session', '--as-pid-1'],
    ...['--cap-add', 'ALL', '--uid', '0', '--gid', '0', '--hostname', 'sandbox'],
    ...view.shared,
    ...['--proc', '/proc', '--dev', '/dev', '--size', String(megabyte), '--tmpfs', '/tmp'],
    ...['--size', String(bundleBytes), '--tmpfs', '/run', '--dir', outside.bundle, '--dir', outside.state],
    ...['--ro-bind', gvisor.program, outside.runsc],
    ...inContainer(view.shared),
    ...['/proc', '/dev', '/sys', '/tmp'].flatMap((folder) => ['--dir', `${root}${folder}`]),
    ...inContainer(['--bind', folders.workspace, inside.workspace, '--bind', folders.home, inside.home]),
    ...(view.runtime === undefined ? [] : inContainer(['--ro-bind', view.runtime, inside.runtime])),
    ...(cache === undefined ? [] : inContainer(['--bind', cache.from, cache.to])),
    ...(view.relaySocket === undefined ? [] : inContainer(['--ro-bind', view.relaySocket, inside.relaySocket])),
    ...(view.egressSocket === undefined ? [] : inContainer(['--ro-bind', view.egressSocket, inside.egressSocket])),
    ...['--remount-ro', '/dev', '--remount-ro', '/', '--chdir', '/'],
    ...Object.entries(outerEnv).flatMap(([name, value]) => ['--setenv', name, value]),
  ];
  return { options, specification };
}

/**
 * Returns the same mount options, but with targets below the container's folder. `options` consists of triples: an option, the source of a
 * mount, and the target of the mount.
 */
function inContainer(options: readonly string[]): string[] {
  return options.map((word, index) => (index % 3 === 2 ? `${root}${word}` : word));
}
