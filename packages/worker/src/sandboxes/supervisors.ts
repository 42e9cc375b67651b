import type { SandboxEgress } from '../egress/egress.ts';
import type { SupervisorProgram } from '../runtime/supervisor-program.ts';
import type { CgroupHierarchy } from './cgroups/hierarchy.ts';
import type { EngineAddress } from './engine/engine.ts';
import type { Sandbox, SandboxSpecification } from './sandbox.ts';

/**
 * The facts with which a worker finds all parts of a sandbox on the machine, such as its processes, cgroup or container. Its supervisor is
 * not included.
 */
export interface SandboxTraces {
  readonly id: string;
  readonly stateRoot: string;
  /** Label in the arguments of the sandbox's first processes. */
  readonly label: string;
  /** Variable `NAME=value` in the environment of the sandbox's processes. */
  readonly variable: string;
  readonly cgroups?: CgroupHierarchy | undefined;
  /** Name of the sandbox's container, and the address of its engine. */
  readonly container?: { readonly name: string; readonly engine: EngineAddress } | undefined;
}

export interface SupervisedRequest {
  readonly program: SupervisorProgram;
  readonly traces: SandboxTraces;
  /** Folder that the sandbox sees as /opt/runyard. */
  readonly runtime: string;
  /** Data of the backend. In the supervisor, code of the same backend prepares the sandbox from this data. */
  readonly preparation: unknown;
}

/** The files from which a sandbox gets its own Debian. */
export interface SystemFiles {
  readonly tree: string;
  /** Folder that such a sandbox sees as /opt/runyard. Its programs load no library of the sandbox's Debian. */
  readonly runtime: string;
}

/** A sandbox that may wait in a pool until an execution needs it. */
export interface PooledSandbox extends Sandbox {
  readonly isAlive: () => boolean;
  /** Resolves if the sandbox ends before a run was started in it. */
  readonly gone: Promise<unknown>;
  /** Connects the sandbox to the proxy for the hosts of its environment. Must be called before `spawn`. */
  openEgress(egress: SandboxEgress): Promise<void>;
  /** Gives the sandbox its own Debian. Must be called before `spawn`. Absent: the backend cannot do this. */
  openSystem?(system: SystemFiles): Promise<void>;
  /** Records the execution to which the sandbox belongs. Must be called before `spawn`. */
  readonly assign?: (specification: SandboxSpecification) => void;
}

/** Makes sandboxes that continue when this process ends. */
export interface SandboxSupervisors {
  /** Socket for the worker's cache, in a folder that only the worker's user may enter. */
  readonly cacheSocket: string;
  /** Runtimes of the sandboxes of earlier workers. These runtimes must not be removed. */
  readonly runtimesInUse: readonly string[];
  /** Prepares a sandbox under a separate supervisor. Rejects with a `SandboxError`. */
  prepare(request: SupervisedRequest): Promise<PooledSandbox>;
}
