/** The request that makes the engine create the container of a sandbox. */
import { harnessFolderInside } from '@runyard/contract/agent/harness-presets/presets';
import { isVariableName } from '@runyard/contract/wire/variable-names';
import { containerInit } from '../../runtime/container-init.ts';
import { inside } from '../bubblewrap/arguments.ts';
import type { SandboxFolders } from '../folders.ts';
import type { SandboxLimits } from '../limits.ts';
import { type ContainerImage, ownFolders } from './images/image.ts';

export interface ContainerView {
  readonly image: ContainerImage;
  /** Name of one of the engine's container runtimes. If it is absent, the engine uses its default runtime. */
  readonly runtime?: string | undefined;
  readonly labels: Readonly<Record<string, string>>;
  readonly folders: Pick<SandboxFolders, 'top' | 'workspace' | 'home'>;
  /** Folder of the machine that the sandbox sees as /opt/runyard. */
  readonly runtimeFolder: string;
  readonly harnessDir?: string | undefined;
  /** Files of the machine that are mounted only in this sandbox. The keys are paths inside the container. */
  readonly files: Readonly<Record<string, string>>;
  /** True if the first process of the container is Runyard's copy of the init. False: the engine's init. */
  readonly hasInit: boolean;
  readonly hasRelay: boolean;
  readonly hasEgress: boolean;
  /** Uid and gid of the sandbox's processes. They are the same inside and outside of the container. */
  readonly uid: number;
  readonly gid: number;
  readonly nofile: number;
  readonly limits: SandboxLimits;
  /** Processors of the run's instance shape. Absent if the run has no shape. */
  readonly vcpus?: number | undefined;
  readonly command: readonly string[];
  readonly env: Readonly<Record<string, string>>;
}

const megabyte = 1024 * 1024;
/**
 * The process limit of the container is higher by one than the process limit of the sandbox, because init also counts as a
 * process of the container.
 */
const ownProcesses = 1;

/** Matches variables of an image that would affect Runyard's programs, because the linker, Node or a library of Node reads them. */
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
  // Replaces a volume of the image by an empty read-only mount. Otherwise the engine would create the volume, with files of the image,
  // on the machine's disk and without a size limit.
  const emptyFolder = (target: string) => ({ Type: 'tmpfs', Target: target, ReadOnly: true });
  const memoryBytes = limits.memoryMb * megabyte;
  // If `limits.cpus` is set, no second limit is needed, because `limits.cpus` is never larger than the number of processors of the run's
  // instance shape.
  const cpus = limits.cpus > 0 ? limits.cpus : (view.vcpus ?? 0);
  const limit = (Name: string, value: number) => ({ Name, Soft: value, Hard: value });
  const command = view.hasInit ? [`${inside.runtime}/${containerInit}`, '--', ...view.command] : view.command;
  return {
    Image: image.id,
    Hostname: 'sandbox',
    User: `${view.uid}:${view.gid}`,
    WorkingDir: inside.workspace,
    Entrypoint: command.slice(0, 1),
    Cmd: command.slice(1),
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
      Init: !view.hasInit,
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
      // Memory and swap together have the same limit as memory alone, so that the container cannot use swap.
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
 * Returns the entries with which the engine changes the environment of the image. The first entries are the variables in `env`; `PATH`
 * also gets the folders of the image's `PATH`. The other entries are names of variables of the image that affect Runyard's programs. A
 * name without `=` removes the variable (`Env` in the engine's API).
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

/** Returns a PATH with Runyard's own folders first, then the folders of the image, and then the usual folders. */
function mergedPath(own: string, ofImage: string): string {
  const folders = own.split(':');
  const ours = folders.filter((folder) => ownFolders.some((start) => folder.startsWith(`${start}/`)));
  const others = ofImage.split(':').filter((folder) => folder.startsWith('/'));
  return [...new Set([...ours, ...others, ...folders])].join(':');
}
