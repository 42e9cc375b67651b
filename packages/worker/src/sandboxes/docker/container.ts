/** The request that makes the engine create the container of a sandbox. */
import { harnessFolderInside } from '@runyard/contract/agent/harness-presets/presets';
import { isVariableName } from '@runyard/contract/wire/variable-names';
import { inside } from '../bubblewrap/arguments.ts';
import type { SandboxFolders } from '../folders.ts';
import type { SandboxLimits } from '../limits.ts';
import { type ContainerImage, ownFolders } from './images/image.ts';

export interface ContainerView {
  readonly image: ContainerImage;
  /** One of the engine's runtimes; absent: the engine's default. */
  readonly runtime?: string | undefined;
  readonly labels: Readonly<Record<string, string>>;
  readonly folders: Pick<SandboxFolders, 'top' | 'workspace' | 'home'>;
  /** Host folder that is /opt/runyard. */
  readonly runtimeFolder: string;
  readonly harnessDir?: string | undefined;
  /** Host files that are mounted only in this sandbox, by their paths inside the container. */
  readonly files: Readonly<Record<string, string>>;
  readonly hasRelay: boolean;
  readonly hasEgress: boolean;
  /** Uid and gid inside and outside. */
  readonly uid: number;
  readonly gid: number;
  readonly nofile: number;
  readonly limits: SandboxLimits;
  /** Processors; absent: all. */
  readonly vcpus?: number | undefined;
  readonly command: readonly string[];
  readonly env: Readonly<Record<string, string>>;
}

const megabyte = 1024 * 1024;
/** The engine's init, which counts as a process of the container. */
const ownProcesses = 1;

/** Variables of an image that would affect Runyard's programs, because the linker, Node, or its libraries read them. */
const changesPrograms =
  /^(?:LD_|NODE_|DYLD_|MALLOC_|GLIBC_|GCONV_|OPENSSL_|SSL_|UV_|V8_|TINI_|ICU_|NO_COLOR$|FORCE_COLOR$|LOCPATH$|NLSPATH$|HOSTALIASES$|RES_OPTIONS$|LOCALDOMAIN$|BASH_ENV$|ENV$|SHELLOPTS$|IFS$|PATH$|USER$|LANG$|TERM$|HARNESS_)/;

/** Returns the body of `POST /containers/create`. */
export function containerRequest(view: ContainerView): object {
  const { image, limits, folders } = view;
  const bind = (source: string, target: string, readOnly: boolean) => ({
    Type: 'bind',
    Source: source,
    Target: target,
    ReadOnly: readOnly,
    BindOptions: { Propagation: 'rprivate' },
  });
  // Replaces a volume of the image by a read-only mount. The volume would be on the machine's disk, without a limit, and contain files of
  // the image.
  const emptyFolder = (target: string) => ({ Type: 'tmpfs', Target: target, ReadOnly: true });
  const memoryBytes = limits.memoryMb * megabyte;
  // `limits.cpus` is already lowered to the shape of the run.
  const cpus = limits.cpus > 0 ? limits.cpus : (view.vcpus ?? 0);
  const limit = (Name: string, value: number) => ({ Name, Soft: value, Hard: value });
  return {
    Image: image.id,
    Hostname: 'sandbox',
    User: `${view.uid}:${view.gid}`,
    WorkingDir: inside.workspace,
    Entrypoint: view.command.slice(0, 1),
    Cmd: view.command.slice(1),
    Env: containerEnvironment(image.env, view.env),
    Labels: view.labels,
    Healthcheck: { Test: ['NONE'] },
    NetworkDisabled: true,
    Tty: false,
    AttachStdin: true,
    AttachStdout: true,
    AttachStderr: true,
    OpenStdin: true,
    StdinOnce: true,
    StopSignal: 'SIGTERM',
    HostConfig: {
      ...(view.runtime === undefined ? {} : { Runtime: view.runtime }),
      ...(cpus > 0 ? { NanoCpus: Math.round(cpus * 1e9) } : {}),
      Init: true,
      AutoRemove: false,
      RestartPolicy: { Name: 'no' },
      LogConfig: { Type: 'none' },
      NetworkMode: 'none',
      Dns: ['127.0.0.1'],
      Privileged: false,
      CapDrop: ['ALL'],
      SecurityOpt: ['no-new-privileges'],
      ReadonlyRootfs: true,
      IpcMode: 'private',
      CgroupnsMode: 'private',
      Memory: memoryBytes,
      // Without swap, memory is limited to exactly this value.
      MemorySwap: memoryBytes,
      PidsLimit: limits.processes + ownProcesses,
      ShmSize: limits.tmpMb * megabyte,
      Ulimits: [limit('nofile', view.nofile), limit('fsize', limits.diskMb * megabyte), limit('core', 0)],
      Tmpfs: { '/tmp': `rw,exec,nosuid,nodev,size=${limits.tmpMb * megabyte},mode=1777` },
      Mounts: [
        ...image.volumes.filter((volume) => !ownFolders.includes(volume)).map(emptyFolder),
        bind(folders.workspace, inside.workspace, false),
        bind(folders.home, inside.home, false),
        bind(view.runtimeFolder, inside.runtime, true),
        ...(view.harnessDir === undefined ? [] : [bind(view.harnessDir, harnessFolderInside, true)]),
        ...(view.hasRelay ? [bind(`${folders.top}/relay.sock`, inside.relaySocket, true)] : []),
        ...(view.hasEgress ? [bind(`${folders.top}/egress.sock`, inside.egressSocket, true)] : []),
        ...Object.entries(view.files).map(([target, source]) => bind(source, target, true)),
      ],
    },
  };
}

/**
 * Returns the entries that complete or change the environment of the image: `env`, whose `PATH` also gets the folders of the image's
 * `PATH`, and the names of the image's variables that affect Runyard's programs. A name without `=` removes the variable (API, `Env`).
 */
function containerEnvironment(ofImage: readonly string[], env: Readonly<Record<string, string>>): string[] {
  const names = ofImage.map((entry) => entry.split('=', 1)[0] ?? '');
  const removed = names.filter((name) => !(name in env) && (!isVariableName(name) || changesPrograms.test(name)));
  const imagePath = ofImage.find((entry) => entry.startsWith('PATH='))?.slice('PATH='.length);
  const own = Object.entries(env).map(([name, value]) =>
    name === 'PATH' && imagePath ? `PATH=${mergedPath(value, imagePath)}` : `${name}=${value}`,
  );
  return [...new Set(removed.filter((name) => name !== ''))].concat(own);
}

/** Returns Runyard's own folders, then the image's folders, and then the usual folders. */
function mergedPath(own: string, ofImage: string): string {
  const folders = own.split(':');
  const ours = folders.filter((folder) => ownFolders.some((start) => folder.startsWith(`${start}/`)));
  const others = ofImage.split(':').filter((folder) => folder.startsWith('/'));
  return [...new Set([...ours, ...others, ...folders])].join(':');
}
