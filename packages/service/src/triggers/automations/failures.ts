/** Counts runs that could not be created, and disables an automation that always fails. */

import type { Queryable, Transaction } from '../../platform/store/database/database.ts';
import { boolean, defineStatement, text, timestamp } from '../../platform/store/database/statement.ts';
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

/** Why a run could not be created. `counts`: whether the failure counts towards the number of failures that disables the automation. */
export interface CountedFailure {
  readonly reason: string;
  readonly counts: boolean;
}

type Counted = Pick<AutomationRow, 'uid' | 'last_spawn_error'>;

/**
 * Returns the statements that count `results`. The results must be in the order in which they happened. A result of null means that a run
 * was created, so the count begins again at 0.
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

const lockFailing = defineStatement({
  name: 'lock_automation_with_failed_run',
  text: `
    SELECT name, factory_uid, enabled, executor_kind, executor_uid, updated_at FROM automations
    WHERE uid = $2 AND team_id = $1 FOR NO KEY UPDATE`,
  row: {
    name: text(),
    factory_uid: text(),
    enabled: boolean,
    executor_kind: text<AutomationRow['executor_kind']>(),
    executor_uid: text(),
    updated_at: timestamp,
  },
});

/** Locks an automation of which a run failed; null if the team has no such automation. */
export const lockFailingAutomation = async (tx: Queryable, teamId: string, uid: string) =>
  (await tx.query(lockFailing, [teamId, uid]))[0] ?? null;

const disable = defineStatement({
  name: 'disable_automation_after_failed_runs',
  text: 'UPDATE automations SET enabled = false, last_spawn_error = $2 WHERE uid = $1',
  row: {},
});

/** Disables an automation, because its runs always fail. The transaction has locked it. */
export async function disableAfterFailures(tx: Queryable, uid: string, reason: string): Promise<void> {
  await tx.query(disable, [uid, reason]);
}
