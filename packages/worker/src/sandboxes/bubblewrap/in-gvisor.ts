import { outside, specificationBytesVariable } from '../gvisor/command.ts';
import { containerSpecification } from '../gvisor/container.ts';
import type { Gvisor } from '../gvisor/find-gvisor.ts';
import { inside, type ProcessLimits, type SandboxView } from './arguments.ts';
import { insideUid } from './filesystem.ts';

/** Folder in the outer sandbox that contains the files of the container. */
const root = '/container';
const megabyte = 1024 * 1024;
/** Memory for the specification and runsc's state. */
const bundleBytes = 8 * megabyte;

/** A program in a gVisor container. */
export interface ContainerStart {
  readonly gvisor: Gvisor;
  readonly view: Omit<SandboxView, 'env' | 'isFiltered'>;
  readonly command: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** Environment of gVisor itself, which marks its processes. */
  readonly outerEnv: Readonly<Record<string, string>>;
  readonly limits: Pick<ProcessLimits, 'nproc' | 'nofile' | 'fileBytes'>;
}

/**
 * Returns bwrap's options for the sandbox around a gVisor container, and the text that its first process reads before the run token. gVisor
 * runs in the same kind of sandbox that agents without gVisor use. So a program that breaks out of gVisor's kernel is still confined, and
 * everything ends with bwrap. The only additional rights are in its own namespaces: gVisor needs them to confine itself further.
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

/** Returns the options with their places moved below the container's folder. `options`: triples of an option, a source and a place. */
function inContainer(options: readonly string[]): string[] {
  return options.map((word, index) => (index % 3 === 2 ? `${root}${word}` : word));
}
