import type { Logger } from 'pino';
import type { Vault } from '../../platform/secrets/vault.ts';
import type { Database } from '../../platform/store/database/database.ts';
import type { Notices } from './notices.ts';

/** Largest numbers of bytes that may be stored for a run or a team. */
export interface RunLimits {
  /** For the conversation and setup events of all executions of a run. */
  readonly eventBytes: number;
  /** For the raw transcript lines of all executions of a run. */
  readonly transcriptBytes: number;
  /** For everything that a team stores. */
  readonly teamBytes: number;
}

/** Time limits of executions, measured by the database's clock. */
export interface ExecutionTiming {
  /** An execution counts as lost if neither its worker nor its agent has sent anything for this time. */
  readonly leaseSeconds: number;
  /**
   * For this time, the connection of a public worker renews the lease of an agent that has not called yet. This time includes the pull of
   * the image.
   */
  readonly agentStartSeconds: number;
  /** For this time after the agent's last call, the worker's connection renews the lease. Agents call at least every 25 s. */
  readonly silentAgentSeconds: number;
  /** How long a lease lasts at most after the worker's connection is lost. */
  readonly reconnectGraceSeconds: number;
  /** How long an execution stays PENDING at most. */
  readonly claimTimeoutSeconds: number;
  /** Time within which an agent must exit after it reported its end. */
  readonly leaveSeconds: number;
  /** How long a sandbox waits for a follow-up if the run's configuration sets no time. */
  readonly idleSeconds: number;
  /** Time between a cancel and the end of the sandbox. */
  readonly cancelGraceSeconds: number;
  /** Waits before the second, third, … launch after a retryable platform error. The length of the list is the number of retries. */
  readonly retryDelaysMs: readonly number[];
}

/** The time limits of an installation that sets none. */
export const defaultTiming: ExecutionTiming = {
  leaseSeconds: 90,
  agentStartSeconds: 900,
  silentAgentSeconds: 180,
  reconnectGraceSeconds: 30,
  claimTimeoutSeconds: 30,
  leaveSeconds: 15,
  idleSeconds: 600,
  cancelGraceSeconds: 5,
  retryDelaysMs: [1000, 5000, 25000],
};

/**
 * The dependencies of the functions that change runs and executions. A service process creates one such object at its start and passes it
 * to these functions.
 */
export interface ExecutionDeps {
  readonly db: Database;
  /** Returns true if no execution may be assigned, because the database is a copy. If absent, executions are always assigned. */
  readonly isPaused?: () => boolean;
  readonly log: Logger;
  readonly notices: Notices;
  readonly timing: ExecutionTiming;
  readonly limits: RunLimits;
  /** Secrets of the service that must never reach the store. Run tokens are added where they become known. */
  readonly secrets: readonly string[];
  /** Opens the secrets that runs were granted. */
  readonly vault: Vault;
  /** Returns a number from 0 to below 1, for jitter. */
  readonly random: () => number;
}
