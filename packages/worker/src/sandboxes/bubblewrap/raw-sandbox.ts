import type { DeniedConnections } from '@runyard/contract/egress/denied';
import type { SandboxEgress } from '../../egress/egress.ts';
import type { SandboxMemory } from '../../relay/memory-answers.ts';
import type { AskService } from '../../relay/service-answers.ts';
import type { ProxyOrder, SandboxProxy, SandboxRelay } from '../../relay-thread/relay-thread.ts';
import type { Sandbox } from '../sandbox.ts';
import type { SystemFiles } from '../supervisors.ts';
import type { SandboxView } from './arguments.ts';
import type { BubblewrapProcess } from './process.ts';

/** Files and folders of a sandbox other than the workspace and the home folder. */
export interface SandboxContents {
  /** Folder of the machine that the sandbox sees as /opt/runyard. */
  readonly runtime?: string;
  readonly writableCache?: SandboxView['writableCache'];
  /**
   * Opens the relay on a socket. The relay reads `memory` to answer requests of the agent. `sandbox` is the id of the sandbox if the worker
   * can copy its workspace and home. `service` answers questions about services from container images. Absent: the sandbox cannot connect to anything.
   */
  readonly relay?: (
    socketPath: string,
    uid: number | undefined,
    memory: () => Promise<SandboxMemory>,
    sandbox?: string,
    service?: AskService,
  ) => Promise<SandboxRelay>;
  /** Opens the proxy. Absent: the sandbox cannot reach hosts. */
  readonly proxy?: (order: ProxyOrder, report: (denied: DeniedConnections) => void) => Promise<SandboxProxy>;
}

/** A sandbox that can run any command: the agent, or the script of the probe. */
export interface RawSandbox extends Sandbox {
  run(command: readonly string[], env: Readonly<Record<string, string>>, runToken?: string): BubblewrapProcess;
  /** Connects the sandbox to the proxy for the hosts of its environment. Must be called before `run`. */
  openEgress(egress: SandboxEgress): Promise<void>;
  /** Gives the sandbox its own Debian. Must be called before `run`. */
  openSystem(system: SystemFiles): Promise<void>;
  /** Returns false if the process of the sandbox has ended. Before `run`, this process ends only if another program kills it. */
  readonly isAlive: () => boolean;
  /** Resolves when the sandbox's process has ended. */
  readonly gone: Promise<unknown>;
  /**
   * Starts an agent that knows the address of the service but has no run yet. A later `spawn` gives the run to this agent and does not
   * start another agent. Resolves when the agent waits. Rejects if the agent ends before it waits; then the caller must dispose of the
   * sandbox.
   */
  startWaiting(serviceRoot: string, env?: Readonly<Record<string, string>>): Promise<void>;
}
