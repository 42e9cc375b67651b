import type { DeniedConnections } from '@runyard/contract/egress/denied';
import type { EgressOrder } from '../egress/egress.ts';
import type { AgentLaunch, SandboxExit } from '../sandboxes/sandbox.ts';

/** A message of the worker to the supervisor of a sandbox. `Preparation` is the data that its backend needs. */
export type Order<Preparation = unknown> =
  | {
      readonly type: 'prepare';
      /** Folder of the sandbox's secret, record and end. */
      readonly folder: string;
      readonly preparation: Preparation;
      readonly adoptSeconds: number;
    }
  /** Opens the proxy to the hosts that the environment allows. Before `start`. */
  | { readonly type: 'open_egress'; readonly egress: EgressOrder }
  | { readonly type: 'start'; readonly launch: AgentLaunch }
  | { readonly type: 'rest'; readonly isResting: boolean; readonly isFrozen?: boolean }
  | { readonly type: 'kill'; readonly how: 'terminate' | 'kill' }
  /** Ends everything in the sandbox and removes it. A sandbox without an agent then reports nothing. */
  | { readonly type: 'dispose' };

/** A message of the supervisor. */
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
  /** Sent again to a worker that adopts the sandbox. */
  | { readonly type: 'denied'; readonly denied: DeniedConnections }
  /** No part of the sandbox is left, and the record of its end is on the disk. */
  | { readonly type: 'ended'; readonly exit: SandboxExit }
  | { readonly type: 'warning'; readonly fields: object; readonly message: string };

/** First message of the supervisor to a worker that wants to adopt its sandbox. */
export interface Challenge {
  readonly nonce: string;
}

/** The worker's answer. It proves that the worker knows the secret, and challenges the supervisor to prove the same. */
export interface WorkerProof {
  readonly proof: string;
  readonly nonce: string;
  readonly adoptSeconds: number;
}

/**
 * The supervisor's answer. Afterwards, the connection carries the same messages as the supervisor's first connection. `exit`: everything in
 * the sandbox has ended.
 */
export interface SupervisorProof {
  readonly proof: string;
}
