import type { DeniedConnections } from '@runyard/contract/egress/denied';
import type { Settings } from '@runyard/contract/settings/settings';
import type { SandboxLevel, SandboxNetwork } from '@runyard/contract/workers/worker-protocol';
import type { Logger } from 'pino';
import type { StateRoot } from '../state/state-root.ts';
import type { ReportedLimits, SandboxLimits } from './limits.ts';
import type { Sandbox, SandboxBackend } from './sandbox.ts';
import type { SandboxSupervisors } from './supervisors.ts';

/** The result of a test sandbox. If `ok` is false, no agent may run. `reasons` say why and how to fix the problem. */
export interface ProbeResult {
  readonly level: SandboxLevel;
  readonly ok: boolean;
  readonly reasons: readonly string[];
  /** Lines for a person about the programs that make the sandboxes, such as their versions. Absent if `level` contains all facts. */
  readonly about?: readonly string[];
}

/** Settings of the backend `docker`. */
export type DockerSettings = Pick<
  Settings,
  | 'RUNYARD_DOCKER_HOST'
  | 'RUNYARD_DOCKER_IMAGE'
  | 'RUNYARD_DOCKER_CONFIG'
  | 'RUNYARD_DOCKER_RUNTIME'
  | 'RUNYARD_DOCKER_REGISTRIES'
  | 'RUNYARD_DOCKER_IMAGE_MB'
  | 'RUNYARD_DOCKER_PULLED_MB'
>;

/** Settings of the backend `kubernetes`. */
export type KubernetesSettings = Pick<
  Settings,
  Extract<keyof Settings, `RUNYARD_KUBERNETES_${string}`> | 'RUNYARD_ADOPT_SECONDS' | 'RUNYARD_CA_FILE'
>;

/** Settings of the backends that need settings of their own. */
export type BackendSettings = DockerSettings & KubernetesSettings;

export interface OpenRequest {
  readonly limits: SandboxLimits;
  /** Number of sandboxes in which an agent waits for its run. */
  readonly warmSandboxes: number;
  /** Folder with programs of harnesses. Every sandbox can read this folder, but not change it. */
  readonly harnessDir: string | undefined;
  readonly state: StateRoot;
  readonly instanceId: string;
  /** Path of the agent's `main.ts`. */
  readonly agentEntry: string;
  /** Socket of the cache in which agents store objects for later runs. If it is absent, agents store nothing for later runs. */
  readonly cacheSocket: string | undefined;
  /** URL of the service without `/api/v1`. */
  readonly serviceRoot: string;
  /** The supervisor processes with which sandboxes survive this process. If this is absent, sandboxes end together with this process. */
  readonly supervisors: SandboxSupervisors | undefined;
  readonly docker: DockerSettings;
  readonly kubernetes: KubernetesSettings;
  readonly log: Logger;
}

/** A sandbox that an earlier worker process left. The sandbox may still run or may have ended. */
export interface AdoptableSandbox {
  readonly record: {
    readonly execution: { readonly task_id: string; readonly execution_id: string };
    readonly assignment_id?: string | undefined;
    readonly limits: ReportedLimits;
    /** True if the environment of the run may lower the worker's limits. */
    readonly limited: boolean;
    /** Hosts to which the environment of the run allows connections. */
    readonly network?: SandboxNetwork | undefined;
    /** Milliseconds from the arrival of the assignment to the start of the agent. */
    readonly spawn_ms: number;
  };
  readonly sandbox: Pick<Sandbox, 'id' | 'ended' | 'rest' | 'kill' | 'dispose'> & {
    /** Registers the function that gets the connections that the sandbox's proxy denied. */
    onDenied(report: (denied: DeniedConnections) => void): void;
  };
  /** True if the sandbox still runs. If it is false, the worker only has to report the end of the sandbox. */
  readonly lives: boolean;
}

export interface AdoptRequest {
  readonly state: StateRoot;
  readonly settings: KubernetesSettings;
  readonly log: Logger;
}

export interface SweepRequest {
  /** Id of the data folder from `chooseStateRoot`. Everything that workers of this folder create is labelled with this id. */
  readonly owner: string;
  readonly stateRoot: string;
  /** Ids of the sandboxes that this worker has adopted, and which must not be removed. */
  readonly kept: ReadonlySet<string>;
  /** Called every few seconds with the processes that have not ended yet. */
  readonly onSlow: (pids: readonly number[]) => void;
  readonly log: Logger;
}

/** One kind of sandbox. The folder of each backend exports one kind, and `backends/backends.ts` lists all kinds. */
export interface BackendKind {
  /**
   * Starts a test sandbox without a worker, and returns how well the sandbox is isolated. Removes everything that was created for the
   * test.
   */
  probe(limits: SandboxLimits, settings: BackendSettings): Promise<ProbeResult>;
  /**
   * Opens the backend, so that sandboxes with agents can be created. Rejects with the reason and the next step if the backend does not
   * work here.
   */
  open(request: OpenRequest): Promise<SandboxBackend>;
  /**
   * Returns the sandboxes of earlier workers of this data folder that run without a supervisor process. Rejects if they cannot be
   * found. The caller holds the lock of the data folder. Absent if the backend has no such sandboxes.
   */
  adopt?(request: AdoptRequest): Promise<readonly AdoptableSandbox[]>;
  /**
   * Removes what earlier workers of this data folder have left in this backend, such as containers or cgroups. Marked processes and
   * folders are not removed here, but for all backends together. Returns the number of removed sandboxes. The caller holds the lock of
   * the data folder.
   */
  sweep(request: SweepRequest): Promise<number>;
}

/** Returns the probe result of a backend that cannot start any sandbox. */
export function unavailable(backend: SandboxLevel['backend'], ...reasons: string[]): ProbeResult {
  const missing = reasons.map((reason) => ({ feature: 'sandbox', reason }));
  return { ok: false, reasons, level: { backend, features: [], missing } };
}

/** End of a message for machines on which no sandbox works. */
export const optOut = 'or let agents run unprotected with RUNYARD_SANDBOX=none, if the machine itself is a sandbox';

/** End of a message for machines without gVisor. */
export const optBack = 'or use bubblewrap alone with RUNYARD_SANDBOX=bubblewrap';
