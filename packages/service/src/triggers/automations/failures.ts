/** Counts runs that could not be created, and disables an automation that always fails. */

import type { Queryable } from '../../platform/store/database/database.ts';
import { boolean, defineStatement, text } from '../../platform/store/database/statement.ts';
import type { Transaction } from '../../platform/store/database/transaction.ts';
import { maxSpawnFailures, pausedBecause } from '../schedules/record.ts';
import type { AutomationRow } from './automation-row.ts';

/** $3: number of failures without the passing ones. Guards that no run is tried after ten failures in a row. */
const recordFailure = defineStatement({
  name: 'record_failure_of_automation',
  text: `
    UPDATE automations SET
      spawn_failures = spawn_failures + $3::int,
      enabled = enabled AND spawn_failures + $3::int < ${maxSpawnFailures},
      last_spawn_error = CASE WHEN spawn_failures + $3::int >= ${maxSpawnFailures} THEN '${pausedBecause} ' ELSE '' END || $2
    WHERE uid = $1 RETURNING enabled`,
  row: { enabled: boolean },
});

const recordSuccess = defineStatement({
  name: 'record_success_of_automation',
  text: `
    UPDATE automations SET spawn_failures = 0, last_spawn_error = NULL
    WHERE uid = $1 AND last_spawn_error IS NOT NULL RETURNING uid`,
  row: { uid: text() },
});

/**
 * Counts a failure. `passing`: the cause ends without a change of the automation, such as an outage. Returns whether
 * the automation is still enabled.
 */
export async function noteFailure(tx: Queryable, uid: string, reason: string, passing: boolean): Promise<boolean> {
  const [row] = await tx.query(recordFailure, [uid, reason, passing ? 0 : 1]);
  return row?.enabled ?? false;
}

/** Why a run could not be created. `passing`: as for `noteFailure`. */
export interface SpawnFailure {
  readonly reason: string;
  readonly passing: boolean;
}

/** Counts the results of an automation in their order. Undefined: a run was created, which begins a new count. */
export function noteResults(
  tx: Transaction,
  automation: Pick<AutomationRow, 'uid' | 'last_spawn_error'>,
  results: readonly (SpawnFailure | undefined)[],
): void {
  const lastSuccess = results.lastIndexOf(undefined);
  if (lastSuccess >= 0 && automation.last_spawn_error !== null) tx.atCommit(recordSuccess, [automation.uid]);
  const failures = results.slice(lastSuccess + 1).flatMap((failure) => failure ?? []);
  const last = failures.at(-1);
  if (last)
    tx.atCommit(recordFailure, [automation.uid, last.reason, failures.filter(({ passing }) => !passing).length]);
}

/** Begins a new count of failures, if there were any when the automation was read. */
export async function noteSuccess(
  tx: Queryable,
  { uid, last_spawn_error: error }: Pick<AutomationRow, 'uid' | 'last_spawn_error'>,
): Promise<void> {
  if (error !== null) await tx.query(recordSuccess, [uid]);
}

/** Returns why a disabled automation starts nothing. */
export const disabledReason = ({ last_spawn_error: error }: Pick<AutomationRow, 'last_spawn_error'>): string =>
  `the automation is disabled${error === null ? '' : `. ${error}`}`;
