import type { ImageSupport } from '../../state/disk-image.ts';
import type { EngineAddress } from '../engine/engine.ts';
import type { SandboxLimits } from '../limits.ts';
import type { ContainerImage } from './images/image.ts';
import type { ContainerService } from './services.ts';

/** Facts about the engine, the folders and the machine that are the same for all containers of a worker. */
export interface ContainerGround {
  readonly engine: EngineAddress;
  /** Name of the container runtime. If it is absent, the engine uses its default runtime. */
  readonly runtime?: string;
  /** True if the container runtime, like gVisor, cannot start a program whose file the container's user cannot read. */
  readonly readsPrograms: boolean;
  readonly stateRoot: string;
  readonly owner: string;
  /** True if each sandbox has a separate user. False if all sandboxes run as the worker's user. */
  readonly ownUsers: boolean;
  readonly disks: ImageSupport;
  readonly harnessDir?: string;
  readonly nofile: number;
  readonly log: { warn(fields: object, message: string): void };
}

/** Everything that a supervisor process needs to prepare a sandbox. The worker sends it as JSON. */
export interface ContainerPreparation {
  readonly backend: 'docker';
  readonly id: string;
  readonly executionId: string;
  readonly ground: Omit<ContainerGround, 'log'>;
  readonly image: ContainerImage;
  readonly limits: SandboxLimits;
  readonly vcpus?: number;
  /** Services that may start beside the sandbox. */
  readonly services?: readonly ContainerService[];
  /** Folder of the machine that the sandbox sees as /opt/runyard. */
  readonly runtime: string;
  readonly serviceRoot: string;
  /** Socket of the worker's cache. If it is absent, agents store nothing for later runs. */
  readonly cacheSocket?: string;
}
