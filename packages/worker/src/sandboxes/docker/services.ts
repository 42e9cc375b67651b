/** The containers of services that run beside the container of a sandbox. */
import type { AskService, ServiceState } from '../../relay/service-answers.ts';
import type { Engine } from '../engine/engine.ts';
import { removeContainer } from '../engine/names.ts';
import { filesOfProcess, limitsOfServices, type SandboxLimits } from '../limits.ts';
import type { ContainerImage } from './images/image.ts';
import { type RunningContainer, startContainer } from './running.ts';

/** A service whose image the engine has. */
export interface ContainerService {
  readonly name: string;
  readonly image: ContainerImage;
  /** Arguments of the image's entry point. Absent: those of the image. */
  readonly args?: readonly string[] | undefined;
  readonly env?: Readonly<Record<string, string>> | undefined;
}

export interface ServicesOrder {
  readonly engine: Engine;
  /** Name of the sandbox's container. */
  readonly sandbox: string;
  readonly services: readonly ContainerService[];
  readonly labels: Readonly<Record<string, string>>;
  readonly runtime?: string | undefined;
  /** Limits of the sandbox. */
  readonly limits: SandboxLimits;
  /** Most files that a process of the machine may open. */
  readonly nofile: number;
  readonly uid: number;
  readonly gid: number;
}

export interface ServiceContainers {
  readonly ask: AskService;
  /** Removes the containers. No service starts afterwards. Rejects if a container cannot be removed. */
  remove(): Promise<void>;
}

const megabyte = 1024 * 1024;
/** Folders that are always writable. Programs write their sockets and process ids there. */
const scratchFolders = ['/tmp', '/run'];

/**
 * Returns the body of `POST /containers/create` for a service. The container has the network of the sandbox's container, and nothing else
 * of the sandbox: no mount, no variable, no process. All writable folders are in memory, so they count toward its memory limit.
 */
export function serviceRequest(order: ServicesOrder, { image, args, env = {} }: ContainerService): object {
  const limits = limitsOfServices(order.limits, order.services.length);
  const { uid, gid } = order;
  const bytes = limits.memoryMb * megabyte;
  const owned = `size=${bytes},uid=${uid},gid=${gid},mode=0700,nosuid,nodev`;
  const limit = (Name: string, value: number) => ({ Name, Soft: value, Hard: value });
  const hasHome = image.env.some((entry) => entry.startsWith('HOME='));
  return {
    Image: image.id,
    User: `${uid}:${gid}`,
    ...(args === undefined ? {} : { Cmd: args }),
    Env: Object.entries({ ...(hasHome ? {} : { HOME: '/tmp' }), ...env }).map(([name, value]) => `${name}=${value}`),
    Labels: order.labels,
    Healthcheck: { Test: ['NONE'] },
    Tty: false,
    AttachStdin: true,
    AttachStdout: true,
    AttachStderr: true,
    OpenStdin: true,
    StdinOnce: true,
    HostConfig: {
      ...(order.runtime === undefined ? {} : { Runtime: order.runtime }),
      ...(limits.cpus > 0 ? { NanoCpus: Math.round(limits.cpus * 1e9) } : {}),
      AutoRemove: false,
      RestartPolicy: { Name: 'no' },
      LogConfig: { Type: 'none' },
      NetworkMode: `container:${order.sandbox}`,
      Privileged: false,
      CapDrop: ['ALL'],
      SecurityOpt: ['no-new-privileges'],
      ReadonlyRootfs: true,
      IpcMode: 'private',
      CgroupnsMode: 'private',
      Memory: bytes,
      // Memory and swap together have the same limit as memory alone, so that the container cannot use swap.
      MemorySwap: bytes,
      PidsLimit: limits.processes,
      ShmSize: bytes,
      Ulimits: [limit('nofile', filesOfProcess(limits, order.nofile)), limit('core', 0)],
      Tmpfs: Object.fromEntries(scratchFolders.map((path) => [path, `rw,exec,nosuid,nodev,size=${bytes},mode=1777`])),
      // Volumes of the image. The driver's `tmpfs` gives them to the user of the service, because databases refuse the folders of others.
      // Without these mounts, the engine would create volumes on the machine's disk, without a size limit.
      Mounts: image.volumes
        .filter((volume) => !scratchFolders.includes(volume))
        .map((volume) => ({
          Type: 'volume',
          Target: volume,
          VolumeOptions: {
            NoCopy: true,
            DriverConfig: { Name: 'local', Options: { type: 'tmpfs', device: 'tmpfs', o: owned } },
          },
        })),
    },
  };
}

/** Makes the containers of services when the agent asks for them, each once. */
export function serviceContainers(order: ServicesOrder): ServiceContainers {
  const { engine, sandbox, services, limits } = order;
  const { memoryMb } = limitsOfServices(limits, Math.max(1, services.length));
  const started = new Map<string, Promise<() => Promise<ServiceState>>>();
  let isOver = false;
  const containerOf = ({ name }: ContainerService): string => `${sandbox}-${name}`;

  const start = async (service: ContainerService): Promise<() => Promise<ServiceState>> => {
    let running: RunningContainer;
    try {
      const json = serviceRequest(order, service);
      await engine.call('POST', '/containers/create', { query: { name: containerOf(service) }, json, answerMs: 0 });
      running = await startContainer(engine, containerOf(service), '');
    } catch (error) {
      const ended = `could not be started: ${(error as Error).message.slice(0, 1000)}`;
      return async () => ({ output: '', ended });
    }
    let ended: string | undefined;
    let rest: string | undefined;
    void running.ended.then(({ exitCode, outOfMemory, outputTail }) => {
      rest = outputTail;
      ended = outOfMemory ? `used up its ${memoryMb} MB of memory and was ended` : `exited with code ${exitCode}`;
    });
    return async () => {
      if (ended === undefined) return { output: running.takeOutput() };
      const output = rest ?? '';
      rest = undefined;
      return { output, ended };
    };
  };

  return {
    async ask(name, isStart) {
      const service = services.find((each) => each.name === name);
      if (service === undefined || isOver) return undefined;
      if (isStart && !started.has(name)) started.set(name, start(service));
      return await (await started.get(name))?.();
    },
    async remove() {
      isOver = true;
      await Promise.all(started.values());
      const ends = services.filter(({ name }) => started.has(name)).map((service) => containerOf(service));
      await Promise.all(ends.map((name) => removeContainer(engine, name)));
    },
  };
}
