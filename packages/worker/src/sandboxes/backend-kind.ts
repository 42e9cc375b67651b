import type { DeniedConnections } from '@runyard/contract/egress/denied';
import type { Settings } from '@runyard/contract/settings/settings';
import type { SandboxLevel, SandboxNetwork } from '@runyard/contract/workers/worker-protocol';
import type { Logger } from 'pino';
import type { Cache } from '../cache/cache.ts';
import type { Upstream } from '../relay/relay.ts';
import type { StateRoot } from '../state/state-root.ts';
import type { ReportedLimits, SandboxLimits } from './limits.ts';
import type { Sandbox, SandboxBackend } from './sandbox.ts';
import type { SandboxSupervisors } from './supervisors.ts';

/** The result of a probe. `ok` false: no agent may run; `reasons` say why, and how to fix the problem. */
export interface ProbeResult {
  readonly level: SandboxLevel;
  readonly ok: boolean;
  readonly reasons: readonly string[];
  /** Facts for a person about the programs that make the sandboxes. Absent: the level contains all facts. */
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

/** Settings of the backends that use more than programs of this machine. */
export type BackendSettings = DockerSettings & KubernetesSettings;

export interface OpenRequest {
  readonly limits: SandboxLimits;
  /** Number of sandboxes in which an agent waits for its run. */
  readonly warmSandboxes: number;
  /** Folder with programs of harnesses, which every sandbox sees read-only. */
  readonly harnessDir: string | undefined;
  readonly state: StateRoot;
  readonly instanceId: string;
  /** The agent's `main.ts`. */
  readonly agentEntry: string;
  readonly upstream: Upstream;
  /** Absent: agents keep nothing for later runs. */
  readonly cache: Cache | undefined;
  /** Service root, without `/api/v1`. */
  readonly serviceRoot: string;
  /** Absent: sandboxes end with this process. */
  readonly supervisors: SandboxSupervisors | undefined;
  readonly docker: DockerSettings;
  readonly kubernetes: KubernetesSettings;
  readonly log: Logger;
}

/** A living or ended sandbox that an earlier worker left. */
export interface AdoptableSandbox {
  readonly record: {
    readonly execution: { readonly task_id: string; readonly execution_id: string };
    readonly assignment_id?: string | undefined;
    readonly limits: ReportedLimits;
    /** True if its environment lowers the worker's limits. */
    readonly limited: boolean;
    /** Hosts that its environment allows. */
    readonly network?: SandboxNetwork | undefined;
    /** Time from the assignment to the agent's start, in milliseconds. */
    readonly spawn_ms: number;
  };
  readonly sandbox: Pick<Sandbox, 'id' | 'ended' | 'rest' | 'kill' | 'dispose'> & {
    /** Takes the connections that its proxy denied. */
    onDenied(report: (denied: DeniedConnections) => void): void;
  };
  /** False: the sandbox has ended, and only its end must be reported. */
  readonly lives: boolean;
}

export interface AdoptRequest {
  readonly state: StateRoot;
  readonly settings: KubernetesSettings;
  readonly log: Logger;
}

export interface SweepRequest {
  /** Id of the data folder from `chooseStateRoot`. It labels everything that the worker creates. */
  readonly owner: string;
  readonly stateRoot: string;
  /** Ids of the sandboxes that this worker has adopted. They are not swept. */
  readonly kept: ReadonlySet<string>;
  /** Called every few seconds with the processes that have not ended yet. */
  readonly onSlow: (pids: readonly number[]) => void;
  readonly log: Logger;
}

/** One kind of sandbox. Each folder of a backend exports one kind; `backends/backends.ts` lists them. */
export interface BackendKind {
  /** Starts a sandbox without a worker and returns how well it isolates. Leaves nothing behind. */
  probe(limits: SandboxLimits, settings: BackendSettings): Promise<ProbeResult>;
  /** Opens the backend, prepared for running the agent. Rejects with the reason and the next step if the backend does not work here. */
  open(request: OpenRequest): Promise<SandboxBackend>;
  /**
   * Returns the sandboxes of earlier workers of this data folder, for a backend that does not use supervisors. Absent: the backend has no
   * such sandboxes. Rejects if they cannot be found. The caller holds the lock of the data folder.
   */
  adopt?(request: AdoptRequest): Promise<readonly AdoptableSandbox[]>;
  /**
   * Removes the remains of earlier workers of this data folder that only this backend knows. Marked processes and folders are removed for
   * all backends together. Returns the number of sandboxes. The caller holds the lock of the data folder and has ended the marked
   * processes.
   */
  sweep(request: SweepRequest): Promise<number>;
}

/** Returns the probe result of a backend that cannot start any sandbox. */
export function unavailable(backend: SandboxLevel['backend'], ...reasons: string[]): ProbeResult {
  const missing = reasons.map((reason) => ({ feature: 'sandbox', reason }));
  return { ok: false, reasons, level: { backend, features: [], missing } };
}

/** Advice for machines without a working sandbox. */
export const optOut = 'or let agents run unprotected with RUNYARD_SANDBOX=none, if the machine itself is a sandbox';

/** Advice for machines without gVisor. */
export const optBack = 'or use bubblewrap alone with RUNYARD_SANDBOX=bubblewrap';
