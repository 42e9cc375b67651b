/** Counts runs that could not be created, and disables an automation that always fails. */

import type { Queryable } from '../../platform/store/database/database.ts';
import { boolean, defineStatement } from '../../platform/store/database/statement.ts';
import type { Transaction } from '../../platform/store/database/transaction.ts';
import { maxSpawnFailures, pausedBecause } from '../schedules/record.ts';
import type { AutomationRow } from './automation-row.ts';

/** Adds $3 to the number of failures, and disables the automation after ten failures in a row. */
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
    WHERE uid = $1 AND last_spawn_error IS NOT NULL RETURNING enabled`,
  row: { enabled: boolean },
});

/** Why a run could not be created. `counts`: whether this failure is one of those that disable the automation. */
export interface CountedFailure {
  readonly reason: string;
  readonly counts: boolean;
}

type Counted = Pick<AutomationRow, 'uid' | 'last_spawn_error'>;

/**
 * Returns the statements that count `results`, which are in the order in which they happened. A result of null means that a run was
 * created, so the count begins again at 0.
 */
function countsOf({ uid, last_spawn_error: error }: Counted, results: readonly (CountedFailure | null)[]) {
  const lastSuccess = results.lastIndexOf(null);
  const failures = results.slice(lastSuccess + 1).flatMap((failure) => failure ?? []);
  const last = failures.at(-1);
  return [
    ...(lastSuccess >= 0 && error !== null ? [{ statement: recordSuccess, values: [uid] }] : []),
    ...(last
      ? [{ statement: recordFailure, values: [uid, last.reason, failures.filter((each) => each.counts).length] }]
      : []),
  ];
}

/** Counts the results of an automation with statements that are sent together with COMMIT. */
export function countAtCommit(tx: Transaction, automation: Counted, results: readonly (CountedFailure | null)[]): void {
  for (const { statement, values } of countsOf(automation, results)) tx.atCommit(statement, values);
}

/** Counts the results of an enabled automation at once. Returns whether the automation is still enabled. */
export async function countNow(
  tx: Queryable,
  automation: Counted,
  results: readonly (CountedFailure | null)[],
): Promise<boolean> {
  let isEnabled = true;
  for (const { statement, values } of countsOf(automation, results)) {
    const [row] = await tx.query(statement, values);
    isEnabled = row?.enabled ?? isEnabled;
  }
  return isEnabled;
}

/** Returns why a disabled automation starts nothing. */
export const disabledReason = ({ last_spawn_error: error }: Pick<AutomationRow, 'last_spawn_error'>): string =>
  `the automation is disabled${error === null ? '' : `. ${error}`}`;
