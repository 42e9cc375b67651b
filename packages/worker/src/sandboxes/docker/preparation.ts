import type { ImageSupport } from '../../state/disk-image.ts';
import type { EngineAddress } from '../engine/engine.ts';
import type { SandboxLimits } from '../limits.ts';
import type { ContainerImage } from './images/image.ts';

/** The engine, folders and properties of the machine that all containers of a worker share. */
export interface ContainerGround {
  readonly engine: EngineAddress;
  /** Container runtime; absent: the engine's own choice. */
  readonly runtime?: string;
  /** True if the runtime cannot start a program that its user cannot read, as with gVisor. */
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

/** Everything that a supervisor needs to prepare a sandbox, as JSON. */
export interface ContainerPreparation {
  readonly backend: 'docker';
  readonly id: string;
  readonly executionId: string;
  readonly ground: Omit<ContainerGround, 'log'>;
  readonly image: ContainerImage;
  readonly limits: SandboxLimits;
  readonly vcpus?: number;
  /** Host folder that is /opt/runyard. */
  readonly runtime: string;
  readonly serviceRoot: string;
  /** Socket of the worker's cache; absent: agents keep nothing for later runs. */
  readonly cacheSocket?: string;
}
