import type { Logger } from 'pino';
import type { Database } from '../store/database/database.ts';
import type { Notices } from './notices.ts';
import type { RunLimits } from './run-limits.ts';

/** Times and limits of the run engine. All are measured by the database's clock. */
export interface EngineTiming {
  /** Without a sign of life from worker or agent for so long, an execution is lost. */
  readonly leaseSeconds: number;
  /** What is left of the lease when the worker's connection drops. */
  readonly reconnectGraceSeconds: number;
  /** PENDING lasts no longer. */
  readonly claimTimeoutSeconds: number;
  /** Time an agent has to leave by itself after it reported its end. */
  readonly leaveSeconds: number;
  /** How long a sandbox waits for a follow-up where the run's configuration does not say. */
  readonly idleSeconds: number;
  /** Time an agent has after a cancel, until its sandbox is killed. */
  readonly cancelGraceSeconds: number;
  /** Waits before the second, third, … launch after a retryable platform error; their number is the number of retries. */
  readonly retryDelaysMs: readonly number[];
}

/** The times where no setting says others. */
export const defaultTiming: EngineTiming = {
  leaseSeconds: 90,
  reconnectGraceSeconds: 30,
  claimTimeoutSeconds: 30,
  leaveSeconds: 15,
  idleSeconds: 600,
  cancelGraceSeconds: 5,
  retryDelaysMs: [1000, 5000, 25000],
};

/** What the functions of this folder need from outside. */
export interface Engine {
  readonly db: Database;
  readonly log: Logger;
  readonly notices: Notices;
  readonly timing: EngineTiming;
  readonly limits: RunLimits;
  /** Values that must never reach the store, besides the run token itself. */
  readonly secrets: readonly string[];
  /** 0 ≤ x < 1, for jitter. */
  readonly random: () => number;
}
