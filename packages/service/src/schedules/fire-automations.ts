import type { FireOutcome } from '@runyard/contract/schedules';
import type { Queryable } from '../store/database/database.ts';
import type { DueSchedule } from './claim.ts';

/** A time of an automation that fired, as its history shows it. */
export interface FireOfAutomation {
  readonly scheduleId: string;
  readonly outcome: FireOutcome;
  readonly runId?: string;
  readonly reason?: string;
  /** True: the automation is disabled, so the schedule has no next time. */
  readonly stops?: true;
}

/**
 * Fires schedules of automations that are due, in the transaction that moves them forward. Those of an automation that another
 * transaction has locked are left out, and fire in a later round: so it waits for no lock.
 */
export type FireAutomations = (tx: Queryable, due: readonly DueSchedule[]) => Promise<readonly FireOfAutomation[]>;
