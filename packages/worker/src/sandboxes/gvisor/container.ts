/** Specification of a gVisor container, in the format of the Open Container Initiative (runtime-spec 1.0). */

/** A folder or file of the outer sandbox to which the container may write. */
export interface WritableFolder {
  /** Path below the container's root, which is also its path in the container. */
  readonly path: string;
}

/** A file system in the memory of the container. */
export interface MemoryFolder {
  readonly path: string;
  readonly bytes: number;
}

export interface ContainerView {
  /** Folder of the outer sandbox that the container sees as its root folder, read-only. */
  readonly root: string;
  readonly writable: readonly WritableFolder[];
  readonly memory: readonly MemoryFolder[];
  readonly command: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly workingFolder: string;
  /** Uid and gid that the processes see. */
  readonly uid: number;
  readonly limits: { readonly nproc: number; readonly nofile: number; readonly fileBytes: number };
}

/**
 * Script of init, the first process of the container. Like the init of a bubblewrap sandbox, it starts the command, forwards SIGTERM
 * to the command, reaps orphans, and ends with the exit code of the command. The run token arrives on standard input, because this is
 * the only descriptor that all versions of gVisor pass to the container.
 */
const initScript = [
  'exec 4<&0 </dev/null',
  'trap \'t=1; kill -TERM "$p" 2>/dev/null\' TERM',
  '"$@" & p=$!',
  'exec 4<&-',
  'wait "$p"; s=$?',
  'while [ "$t" ]; do t=; wait "$p"; r=$?; [ "$r" = 127 ] || s=$r; done',
  'exit "$s"',
].join('\n');

/**
 * The process limit of the container is higher by one than the process limit of the run, because the limit also counts init. `unshare`
 * needs no further process, because its process becomes init.
 */
const ownProcesses = 1;

/** System calls with which a program could remove the mount that hides ptrace_scope (see below). */
const refusedCalls = ['mount', 'umount2', 'pivot_root', 'chroot', 'move_mount', 'fsopen', 'fsmount', 'open_tree'];

/**
 * Returns the specification. The root user of the container is the user of the outer sandbox, because this user owns the workspace and
 * the home folder. The command runs in a separate user namespace of gVisor's kernel. In this namespace, the same user has the uid
 * `uid` and no capabilities.
 */
export function containerSpecification(view: ContainerView): object {
  const { limits, uid } = view;
  const rlimits = {
    RLIMIT_NPROC: limits.nproc + ownProcesses,
    RLIMIT_NOFILE: limits.nofile,
    RLIMIT_FSIZE: limits.fileBytes,
    RLIMIT_CORE: 0,
  };
  const asUser = ['/usr/bin/unshare', '--user', `--map-user=${uid}`, `--map-group=${uid}`, '--'];
  // `unshare` needs this capability to create a user namespace that maps the root user (user_namespaces(7)). The command does not get the
  // capability.
  const mapping = ['CAP_SETFCAP'];
  return {
    ociVersion: '1.0.2',
    hostname: 'sandbox',
    root: { path: view.root, readonly: true },
    process: {
      user: { uid: 0, gid: 0 },
      args: [...asUser, '/bin/sh', '-c', initScript, 'init', ...view.command],
      env: Object.entries(view.env).map(([name, value]) => `${name}=${value}`),
      cwd: view.workingFolder,
      noNewPrivileges: true,
      capabilities: { bounding: mapping, effective: mapping, permitted: mapping },
      rlimits: Object.entries(rlimits).map(([type, limit]) => ({ type, hard: limit, soft: limit })),
    },
    mounts: [
      { destination: '/proc', type: 'proc', source: 'proc' },
      // Hides the file ptrace_scope, because a program that writes 0 to this file could read the memory of the agent.
      memoryMount('/proc/sys/kernel/yama', 4096, 'ro', 'mode=555'),
      { destination: '/dev', type: 'tmpfs', source: 'tmpfs', options: ['nosuid', 'mode=755'] },
      ...view.memory.map(({ path, bytes }) => memoryMount(path, bytes, 'nosuid', 'nodev', 'mode=1777')),
      ...view.writable.map(({ path }) => ({
        destination: path,
        type: 'bind',
        source: `${view.root}${path}`,
        options: ['rbind', 'rw', 'nosuid', 'nodev'],
      })),
    ],
    linux: {
      namespaces: ['pid', 'ipc', 'uts', 'mount', 'network'].map((type) => ({ type })),
      seccomp: {
        defaultAction: 'SCMP_ACT_ALLOW',
        syscalls: [{ names: refusedCalls, action: 'SCMP_ACT_ERRNO', errnoRet: 1 }],
      },
    },
  };
}

function memoryMount(destination: string, bytes: number, ...options: readonly string[]) {
  return { destination, type: 'tmpfs', source: 'tmpfs', options: [`size=${bytes}`, ...options] };
}
