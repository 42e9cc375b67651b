/** Runs that each run one check of another run in a fresh sandbox. */
import type { BaseCommit } from '@runyard/contract/runs/agent-events';
import type { RunState } from '@runyard/contract/runs/states';
import type { Queryable } from '../../../platform/store/database/database.ts';
import {
  boolean,
  defineStatement,
  integer,
  json,
  nullable,
  text,
  uuid,
} from '../../../platform/store/database/statement.ts';

/** Names one try of one check. */
export interface FreshCheckKey {
  readonly executionId: string;
  readonly turn: number;
  readonly attempt: number;
  readonly name: string;
}

/** SQL: the run with this id runs a check of another run. */
export const isFreshCheck = (runId: string): string => `EXISTS (SELECT FROM fresh_checks k WHERE k.run_id = ${runId})`;

const find = defineStatement({
  name: 'find_fresh_check',
  text: `SELECT run_id FROM fresh_checks WHERE execution_id = $1 AND turn = $2 AND attempt = $3 AND name = $4`,
  row: { run_id: uuid },
});

/** Returns the run of a try; undefined if there is none yet. */
export async function findFreshCheck(db: Queryable, key: FreshCheckKey): Promise<string | undefined> {
  const [row] = await db.query(find, [key.executionId, key.turn, key.attempt, key.name]);
  return row?.run_id;
}

/** The agent states the number of the turn, so tries count by the turns that it has not finished. */
const count = defineStatement({
  name: 'count_fresh_checks_of_open_turn',
  text: `
    SELECT count(*) AS tries FROM executions e JOIN fresh_checks k ON k.execution_id = e.id AND k.turn > e.finished_turns
    WHERE e.id = $1 AND k.name = $2`,
  row: { tries: integer },
});

/** Returns how many times a check was tried since the execution has finished a turn. The caller has locked the execution. */
export async function countFreshChecks(
  tx: Queryable,
  { executionId, name }: Pick<FreshCheckKey, 'executionId' | 'name'>,
): Promise<number> {
  const [row] = await tx.query(count, [executionId, name]);
  return Number(row?.tries ?? 0);
}

/** The parts of a check that its run needs. */
export interface FreshCheckParts {
  /** The stored changes of the checked run. */
  readonly snapshotId: string;
  readonly trustedPaths: readonly string[];
  readonly baseCommits: readonly BaseCommit[];
}

const insert = defineStatement({
  name: 'insert_fresh_check',
  text: `
    INSERT INTO fresh_checks (run_id, execution_id, turn, attempt, name, snapshot_id, trusted_paths, base_commits)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`,
  row: {},
});

/** Records that the run, which is written in the same transaction, runs this check. */
export async function insertFreshCheck(
  tx: Queryable,
  runId: string,
  { executionId, turn, attempt, name }: FreshCheckKey,
  { snapshotId, trustedPaths, baseCommits }: FreshCheckParts,
): Promise<void> {
  const parts = [snapshotId, JSON.stringify(trustedPaths), JSON.stringify(baseCommits)];
  await tx.query(insert, [runId, executionId, turn, attempt, name, ...parts]);
}

/** SQL: the `FreshCheckParts` of the run with this id; NULL if it is not the run of a check. */
export const freshCheckOf = (runId: string): string => `(
  SELECT jsonb_build_object('snapshotId', k.snapshot_id, 'trustedPaths', k.trusted_paths, 'baseCommits', k.base_commits)
  FROM fresh_checks k WHERE k.run_id = ${runId})`;

const readIs = defineStatement({
  name: 'read_is_fresh_check',
  text: `SELECT ${isFreshCheck('$1')} AS is_check`,
  row: { is_check: boolean },
});

/** Returns whether the run runs a check of another run. Such a run takes no messages, and cannot be repeated or forked. */
export async function isOfFreshCheck(db: Queryable, runId: string): Promise<boolean> {
  return (await db.query(readIs, [runId]))[0]?.is_check === true;
}

/** A later try of the same check replaces the earlier ones of the turn. */
const readPassed = defineStatement({
  name: 'read_passed_fresh_checks',
  text: `
    SELECT k.name FROM fresh_checks k JOIN runs r ON r.id = k.run_id
    WHERE k.execution_id = $1 AND k.turn = $2 AND k.snapshot_id = $3 AND r.state = 'SUCCEEDED' AND NOT EXISTS (
      SELECT FROM fresh_checks later
      WHERE later.execution_id = $1 AND later.turn = $2 AND later.name = k.name AND later.attempt > k.attempt)`,
  row: { name: text() },
});

/** Returns the names of the checks whose runs have seen them pass in this turn, on the stored changes with this id. */
export async function readPassedFreshChecks(
  db: Queryable,
  { executionId, turn, snapshotId }: Pick<FreshCheckKey, 'executionId' | 'turn'> & Pick<FreshCheckParts, 'snapshotId'>,
): Promise<string[]> {
  return (await db.query(readPassed, [executionId, turn, snapshotId])).map(({ name }) => name);
}

/** Payload of `check_finished` in the run of a check. */
interface FinishedCheck {
  readonly exit_code?: number;
  readonly output_tail?: string;
  readonly error?: string;
}

const readOutcome = defineStatement({
  name: 'read_outcome_of_fresh_check',
  text: `
    SELECT r.state, r.status_message, (
      SELECT v.payload FROM run_events v WHERE v.run_id = r.id AND v.event_type = 'check_finished' ORDER BY v.seq DESC LIMIT 1) AS finished
    FROM runs r JOIN fresh_checks k ON k.run_id = r.id WHERE r.id = $1 AND r.parent_run_id = $2`,
  row: { state: text<RunState>(), status_message: nullable(text()), finished: nullable(json<FinishedCheck>()) },
});

/** State of the run of a check. */
export interface FreshCheckOutcome {
  readonly state: RunState;
  /** Why the run ended without success; null: it succeeded or has not ended. */
  readonly status_message: string | null;
  /** The end of its command; null: the command has not ended. */
  readonly finished: FinishedCheck | null;
}

/** Reads the run of a check that `checkedRunId` has started; undefined if there is no such run. */
export async function readFreshCheckOutcome(
  db: Queryable,
  runId: string,
  checkedRunId: string,
): Promise<FreshCheckOutcome | undefined> {
  const [row] = await db.query(readOutcome, [runId, checkedRunId]);
  return row;
}
