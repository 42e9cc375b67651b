import type { FireOutcome } from '@runyard/contract/schedules';
import type { Queryable } from '../../platform/store/database/database.ts';
import type { DueSchedule } from './claim.ts';

/** A time of an automation that fired, in the form of its history. */
export interface FireOfAutomation {
  readonly scheduleId: string;
  readonly outcome: FireOutcome;
  readonly runId?: string;
  readonly reason?: string;
  /** True: the automation is disabled, so the schedule has no next time. */
  readonly stops?: true;
}

/**
 * Fires schedules of automations that are due, in the transaction that sets their next times. Skips those of an automation that another
 * transaction has locked, which fire in a later round, so it waits for no lock.
 */
export type FireAutomations = (tx: Queryable, due: readonly DueSchedule[]) => Promise<readonly FireOfAutomation[]>;
