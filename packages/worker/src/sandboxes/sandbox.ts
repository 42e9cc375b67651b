import type { SandboxLevel } from '@runyard/contract/worker-protocol';

/** Limits of one sandbox, from the worker's settings. */
export interface SandboxLimits {
  readonly memoryMb: number;
  /** Processes and threads together. */
  readonly processes: number;
  readonly tmpMb: number;
  /** Workspace and home together. */
  readonly diskMb: number;
}

/** What the agent program is started with. The backend adds Node, the bundle's path, and `PATH`, `HOME`, `USER`, `LANG`, `TERM`. */
export interface AgentLaunch {
  /** Arguments after the bundle's path. No secrets: other processes of the machine can read arguments. */
  readonly args: readonly string[];
  /** Whole environment of the agent beside what the backend adds; nothing of the worker's own. */
  readonly env: Readonly<Record<string, string>>;
  /**
   * Token of the run. The backend gives it by a descriptor that `RUNYARD_RUN_TOKEN_FD` names: the environment of a process
   * can be read by every other process of its user.
   */
  readonly runToken: string;
}

/** Why a backend ended a sandbox by itself. */
export interface SandboxVerdict {
  /** Machine reason: `disk_limit`. */
  readonly reason: string;
  /** What happened and what to do, for a person. */
  readonly message: string;
}

/** How the first process of a sandbox ended. */
export interface SandboxExit {
  /** 128 + signal where a signal ended it. */
  readonly exitCode: number;
  /** True: the kernel killed something in the sandbox because its memory was used up. */
  readonly outOfMemory: boolean;
  /** Set where the backend ended it. */
  readonly verdict?: SandboxVerdict;
  /** Last 64 KB of standard output and standard error together. */
  readonly outputTail: string;
}

/** One place for one execution. Used for one `spawn`, never again. */
export interface Sandbox {
  /** Unique on the machine; in folder, cgroup and process names. */
  readonly id: string;
  /** Host folder that is the agent's working directory. */
  readonly workspace: string;
  /**
   * Starts the agent. Resolves as soon as its first process exists; `ended` resolves when that process and everything it
   * started is gone. Rejects with a `SandboxError` of phase `spawn`.
   */
  spawn(launch: AgentLaunch): Promise<{ readonly ended: Promise<SandboxExit> }>;
  /**
   * Ends everything in the sandbox. `terminate` asks the agent by SIGTERM and returns at once; `kill` leaves nobody a choice
   * and makes `ended` resolve as soon as the kernel has ended everything. Both do nothing when nothing runs.
   */
  kill(how: 'terminate' | 'kill'): void;
  /**
   * Kills what is left, waits until all of it is gone, however long that takes, and removes folders, socket and cgroups. Never
   * rejects: what it cannot remove is logged and swept at the next start.
   */
  dispose(): Promise<void>;
}

/** A way to make sandboxes: one folder each. */
export interface SandboxBackend {
  /** What its sandboxes are worth, as probed when the worker started. */
  describe(): SandboxLevel;
  /**
   * Makes folders, identity, limits and relay of a new sandbox. Nothing runs in it yet. Fast: a backend may keep one ready.
   * Rejects with a `SandboxError` of phase `prepare`.
   */
  prepare(): Promise<Sandbox>;
  /** Ends what the backend itself holds (sandboxes kept ready, locks). Sandboxes that were handed out are disposed of by who has them. */
  close(): Promise<void>;
}

/** A sandbox could not be made: in which phase, a machine reason, and a message that says what to do. */
export class SandboxError extends Error {
  readonly phase: 'prepare' | 'spawn';
  readonly reason: string;

  constructor(phase: 'prepare' | 'spawn', reason: string, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'SandboxError';
    this.phase = phase;
    this.reason = reason;
  }
}
