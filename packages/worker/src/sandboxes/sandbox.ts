import type { ImageService } from '@runyard/contract/environments/services';
import type { SandboxLevel, SandboxNetwork } from '@runyard/contract/workers/worker-protocol';
import type { SandboxEgress } from '../egress/egress.ts';
import type { SandboxLimits } from './limits.ts';
import type { PoolCounts } from './pool.ts';

/** A file that the backend places in the sandbox before the agent starts. */
export interface SandboxFile {
  /** Absolute path inside the sandbox. */
  readonly path: string;
  readonly content: Uint8Array;
  /** Permission bits, such as 0o600. */
  readonly mode: number;
}

/**
 * Describes the sandbox that a backend must create. A backend rejects a specification that contains a part which the backend does not
 * support (see `refuseUnsupported` in `specification.ts`).
 */
export interface SandboxSpecification {
  /**
   * Id of the execution to which the sandbox belongs. If sandboxes of a backend can live longer than the worker, the backend labels them
   * with this id.
   */
  readonly executionId: string;
  /** Id of the execution's run. */
  readonly taskId: string;
  /** Id of the assignment with which the service gave the execution to this worker. */
  readonly assignmentId?: string;
  /**
   * Name of the container image with the programs of the sandbox. If it is absent, the backend uses its default: the programs of this
   * machine or a default image.
   */
  readonly image?: string;
  /** `debian`: the sandbox has its own Debian, to which setup commands and the agent may add packages. */
  readonly system?: 'debian';
  /** The services that start from container images. Only for backends with the feature `service-images`. */
  readonly services?: readonly ImageService[];
  readonly limits: SandboxLimits;
  /** True if the environment of the run may lower the worker's limits. */
  readonly isLimited: boolean;
  /** Opens the proxy to the hosts that the environment allows. If it is absent, the sandbox can reach only the service. */
  readonly egress?: SandboxEgress;
  /** The hosts that the environment allows, in the form in which messages to the service contain them. Absent if the environment allows no hosts. */
  readonly network?: SandboxNetwork;
  readonly files: readonly SandboxFile[];
  /** Number of processors that the run asks for with its instance shape. Backends that can limit processors use this number. */
  readonly vcpus?: number;
  /** Called for each step of downloading the image. */
  readonly onImage?: (step: ImageStep) => void;
  /** Called with the last lines of a service, if the agent cannot read them. `ended`: how the service ended. */
  readonly onService?: (printed: { readonly name: string; readonly output: string; readonly ended?: string }) => void;
  /** Names of the environment variables in the assignment. Absent if there are none. */
  readonly variables?: readonly string[];
}

/** A step of downloading the image. The timeline of the run shows the steps. */
export type ImageStep =
  | { readonly step: 'started'; readonly image: string }
  | {
      readonly step: 'progress';
      readonly image: string;
      readonly downloadedBytes: number;
      readonly totalBytes: number;
    }
  | {
      readonly step: 'finished';
      readonly image: string;
      readonly durationMs: number;
      /** Absent if the pull failed; then `error` is set. */
      readonly bytes?: number;
      readonly error?: string;
    };

/**
 * Arguments and environment of the agent program. The backend adds Node, the bundle's path, and the variables `PATH`, `HOME`, `USER`,
 * `LANG` and `TERM`.
 */
export interface AgentLaunch {
  /** Arguments after the bundle's path. No secrets: other processes of the machine can read arguments. */
  readonly args: readonly string[];
  /** Environment of the agent without the variables that the backend adds. It contains no variable from the worker's own environment. */
  readonly env: Readonly<Record<string, string>>;
  /**
   * The run token. The backend passes it through the descriptor whose number is in `RUNYARD_RUN_TOKEN_FD`. The environment is not
   * used, because other processes of the same user can read it.
   */
  readonly runToken: string;
}

/** Why a backend itself ended a sandbox. */
export interface SandboxVerdict {
  /** Reason for programs. Only `disk_limit` exists. */
  readonly reason: string;
  /** Message for a person: what is wrong and what to do. */
  readonly message: string;
}

/** How the first process of a sandbox ended. */
export interface SandboxExit {
  /** 128 + signal if a signal ended the process. */
  readonly exitCode: number;
  /** True if the kernel killed a process in the sandbox because the memory of the sandbox was used up. */
  readonly outOfMemory: boolean;
  /** Set if the backend itself ended the sandbox. */
  readonly verdict?: SandboxVerdict;
  /** Last 64 KB of standard output and standard error together. */
  readonly outputTail: string;
}

/** The sandbox of one execution. It starts one agent and is never used again. */
export interface Sandbox {
  /** Id of the sandbox, unique on the machine. The names of its folder, cgroup and processes contain this id. */
  readonly id: string;
  /** Folder of the machine that is the working directory of the agent. */
  readonly workspace: string;
  /** Starts the agent, once. Resolves when its first process exists. Rejects with a `SandboxError` of phase `spawn`. */
  spawn(launch: AgentLaunch): Promise<void>;
  /** Resolves when the agent and every process that it started are gone. Stays pending before `spawn`. */
  readonly ended: Promise<SandboxExit>;
  /**
   * Called with true when the agent begins to wait and gives up its slot, and with false when the agent works again. While the agent waits,
   * the processes of its sandbox get only the processor time that no other sandbox uses. If `isFrozen` is true, the agent waits for other
   * runs. Then all processes except the agent are frozen, if the kernel can freeze processes. Absent if the backend gives the processes of
   * waiting agents as much processor time as others.
   */
  rest?(isResting: boolean, isFrozen?: boolean): void;
  /**
   * Ends the sandbox. `terminate` sends SIGTERM to the agent and returns at once. `kill` sends SIGKILL to all processes; `ended`
   * resolves when the kernel has ended them. Does nothing if no process runs.
   */
  kill(how: 'terminate' | 'kill'): void;
  /**
   * Kills the remaining processes, and waits without a time limit until all have ended. Then removes the folders, the socket and the
   * cgroups. Never rejects. If something cannot be removed, this is logged, and the next worker removes it when it starts.
   */
  dispose(): Promise<void>;
}

/** Creates sandboxes of one kind. */
export interface SandboxBackend {
  /** Returns how well the sandboxes are isolated. This was measured with a test sandbox when the worker started. */
  describe(): SandboxLevel;
  /**
   * Creates a sandbox with folders, user, limits and relay. The agent of the run does not run yet. A backend may take the sandbox from a
   * pool. Rejects with a `SandboxError` of phase `prepare`, or with the reason of `signal` if `signal` is aborted first. If it rejects,
   * no part of the sandbox is left.
   */
  create(specification: SandboxSpecification, signal: AbortSignal): Promise<Sandbox>;
  /** URL at which agents reach the service. If it is absent, agents use the same URL as the worker. */
  readonly agentServiceRoot?: string;
  /**
   * Called when the service has confirmed the end of an execution. Removes objects of the execution that the backend kept until then.
   * Never rejects. Absent if the backend keeps no such objects.
   */
  forget?(executionId: string): Promise<void>;
  /**
   * Ends the sandboxes that the backend keeps ready. Called when the worker will get few or no further executions. Absent if the
   * backend keeps no sandboxes ready.
   */
  drain?(): void;
  /** Returns the state of the pool of sandboxes in which agents wait for runs. Absent if the backend has no such pool. */
  waiting?(): PoolCounts;
  /**
   * Releases the resources of the backend: the sandboxes in its pool, and locks. For sandboxes from `create`, the caller must call
   * `dispose`.
   */
  close(): Promise<void>;
}

/** A sandbox could not be created or started. */
export class SandboxError extends Error {
  override readonly name = 'SandboxError';
  readonly phase: 'prepare' | 'spawn';
  /** Reason for programs, such as `sandbox_not_prepared`. */
  readonly reason: string;

  constructor(phase: 'prepare' | 'spawn', reason: string, message: string, options?: ErrorOptions) {
    super(message, options);
    this.phase = phase;
    this.reason = reason;
  }
}

/** Returns the error of a sandbox that could not be prepared. */
export const notPrepared = (cause: Error): SandboxError =>
  new SandboxError('prepare', 'sandbox_not_prepared', `the sandbox could not be prepared: ${cause.message}`, { cause });
