import type { SandboxLevel, SandboxNetwork } from '@runyard/contract/workers/worker-protocol';
import type { SandboxEgress } from '../egress/egress.ts';
import type { SandboxLimits } from './limits.ts';
import type { PoolCounts } from './pool.ts';

/** A file that the sandbox has before its agent starts. */
export interface SandboxFile {
  /** Absolute path inside the sandbox. */
  readonly path: string;
  readonly content: Uint8Array;
  /** Permission bits, such as 0o600. */
  readonly mode: number;
}

/** Specifies a sandbox. A backend rejects a specification that it cannot meet (see `refuseUnsupported` in `specification.ts`). */
export interface SandboxSpecification {
  /** Execution that the sandbox belongs to. A backend whose sandboxes live longer than the worker labels them with this id. */
  readonly executionId: string;
  /** Run of the execution. */
  readonly taskId: string;
  /** Assignment that brought the execution to this worker. */
  readonly assignmentId?: string;
  /** Container image to start from; absent: the programs of this machine. */
  readonly image?: string;
  readonly limits: SandboxLimits;
  /** True if the environment of the run lowers the worker's limits. */
  readonly isLimited: boolean;
  /** Opens the proxy to the hosts that the environment allows; absent: the sandbox can reach only the service. */
  readonly egress?: SandboxEgress;
  /** The hosts that the environment allows, in the form that messages to the service use; absent: no hosts. */
  readonly network?: SandboxNetwork;
  readonly files: readonly SandboxFile[];
  /** Machine size that the run asks for. A backend that limits processors applies it. */
  readonly vcpus?: number;
  /** Called for each step of the image's pull. */
  readonly onImage?: (step: ImageStep) => void;
  /** Names of the variables that the assignment gives its agent; absent: no variables. */
  readonly variables?: readonly string[];
}

/** A step of the pull of the image, for the timeline of the run. */
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
      /** Absent: the pull failed with `error`. */
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
   * Token of the run. The backend passes it through the descriptor in `RUNYARD_RUN_TOKEN_FD`, because every other process of the same user
   * can read the environment of a process.
   */
  readonly runToken: string;
}

/** Why a backend itself ended a sandbox. */
export interface SandboxVerdict {
  /** Machine reason: `disk_limit`. */
  readonly reason: string;
  /** The fault and its remedy, for a person. */
  readonly message: string;
}

/** How the first process of a sandbox ended. */
export interface SandboxExit {
  /** 128 + signal if a signal ended the process. */
  readonly exitCode: number;
  /** True if the kernel killed a process in the sandbox because its memory was used up. */
  readonly outOfMemory: boolean;
  /** Set if the backend ended the sandbox. */
  readonly verdict?: SandboxVerdict;
  /** Last 64 KB of standard output and standard error together. */
  readonly outputTail: string;
}

/** The sandbox of one execution. It starts one agent and is never used again. */
export interface Sandbox {
  /** Id of the sandbox, unique on the machine. The names of its folder, cgroup and processes contain this id. */
  readonly id: string;
  /** Host folder that is the agent's working directory. */
  readonly workspace: string;
  /** Starts the agent, once. Resolves when its first process exists. Rejects with a `SandboxError` of phase `spawn`. */
  spawn(launch: AgentLaunch): Promise<void>;
  /** Resolves when the agent and every process that it started are gone. Stays pending before `spawn`. */
  readonly ended: Promise<SandboxExit>;
  /**
   * Called with true when the sandbox's agent starts to wait without a slot, and with false when it works again. While the agent waits, its
   * commands get only the processor time that no other sandbox uses. `isFrozen`: the agent waits for other runs, so all processes except
   * the agent are frozen if the kernel can do this. Absent: the backend has no such function.
   */
  rest?(isResting: boolean, isFrozen?: boolean): void;
  /**
   * Ends everything in the sandbox. `terminate` sends SIGTERM to the agent and returns at once. `kill` ends all processes; `ended` resolves
   * as soon as the kernel has ended them. Does nothing when nothing runs.
   */
  kill(how: 'terminate' | 'kill'): void;
  /**
   * Kills the remaining processes, and waits without a time limit until all have ended. Then removes folders, socket and cgroups. Never
   * rejects: a part that cannot be removed is logged, and the next start of a worker removes it.
   */
  dispose(): Promise<void>;
}

/** Creates sandboxes of one kind. */
export interface SandboxBackend {
  /** Describes how well its sandboxes isolate, as probed when the worker started. */
  describe(): SandboxLevel;
  /**
   * Creates a sandbox: folders, user, limits and relay. No program runs in it yet. A backend may take the sandbox from a pool. Rejects with
   * a `SandboxError` of phase `prepare`, or with the reason of `signal` if `signal` is aborted first. If it rejects, nothing is left
   * behind.
   */
  create(specification: SandboxSpecification, signal: AbortSignal): Promise<Sandbox>;
  /** URL at which agents reach the service; absent: the worker's URL. */
  readonly agentServiceRoot?: string;
  /**
   * Removes the objects that the backend keeps until the service has confirmed the end of an execution. Absent: the backend keeps no such
   * objects. Never rejects.
   */
  forget?(executionId: string): Promise<void>;
  /**
   * Ends the sandboxes that it keeps ready, because few or no executions will come. Absent: the backend keeps no
   * sandboxes ready.
   */
  drain?(): void;
  /** Returns the state of its pool of sandboxes with waiting agents. Absent: it has no such pool. */
  waiting?(): PoolCounts;
  /** Releases the resources of the backend itself: sandboxes in its pool, locks. Created sandboxes are disposed of by their owners. */
  close(): Promise<void>;
}

/** A sandbox could not be created or started. */
export class SandboxError extends Error {
  override readonly name = 'SandboxError';
  readonly phase: 'prepare' | 'spawn';
  /** Machine reason, such as `sandbox_not_prepared`. */
  readonly reason: string;

  constructor(phase: 'prepare' | 'spawn', reason: string, message: string, options?: ErrorOptions) {
    super(message, options);
    this.phase = phase;
    this.reason = reason;
  }
}
