import type { DeniedConnections } from '@runyard/contract/egress/denied';
import type { EgressOrder } from '../egress/egress.ts';
import type { AgentLaunch, SandboxExit } from '../sandboxes/sandbox.ts';
import type { SystemFiles } from '../sandboxes/supervisors.ts';

/** A message of the worker to the supervisor of a sandbox. `Preparation` is the data from which the backend prepares the sandbox. */
export type Order<Preparation = unknown> =
  | {
      readonly type: 'prepare';
      /** Folder with the secret, the record and the end of the sandbox. */
      readonly folder: string;
      readonly preparation: Preparation;
      readonly adoptSeconds: number;
    }
  /** Opens the proxy to the hosts that the environment allows. Must be sent before `start`. */
  | { readonly type: 'open_egress'; readonly egress: EgressOrder }
  /** Gives the sandbox its own Debian. Must be sent before `start`. */
  | { readonly type: 'open_system'; readonly system: SystemFiles }
  | { readonly type: 'start'; readonly launch: AgentLaunch }
  | { readonly type: 'rest'; readonly isResting: boolean; readonly isFrozen?: boolean }
  | { readonly type: 'kill'; readonly how: 'terminate' | 'kill' }
  /** Ends all processes of the sandbox and removes the sandbox. */
  | { readonly type: 'dispose' };

/** A message of the supervisor to the worker. */
export type Report =
  | { readonly type: 'prepared'; readonly workspace: string }
  | {
      readonly type: 'not_prepared';
      readonly phase: 'prepare' | 'spawn';
      readonly reason: string;
      readonly message: string;
    }
  | { readonly type: 'started' }
  /** The sandbox has been removed before any program was started in it. */
  | { readonly type: 'disposed' }
  /** Denied connections. They are sent again to a worker that adopts the sandbox. */
  | { readonly type: 'denied'; readonly denied: DeniedConnections }
  /** No part of the sandbox is left, and the record of its end is on the disk. */
  | { readonly type: 'ended'; readonly exit: SandboxExit }
  | { readonly type: 'warning'; readonly fields: object; readonly message: string };

/** First message of a supervisor to a worker that wants to adopt a sandbox. */
export interface Challenge {
  readonly nonce: string;
}

/**
 * The worker's answer. `proof` proves that the worker knows the secret. With `nonce`, the worker asks the supervisor for the same proof.
 */
export interface WorkerProof {
  readonly proof: string;
  readonly nonce: string;
  readonly adoptSeconds: number;
}

/**
 * The supervisor's answer. After it, both sides send the same messages on this connection as on the connection to the first worker.
 * `exit` is set if all processes of the sandbox have ended.
 */
export interface SupervisorProof {
  readonly proof: string;
}
