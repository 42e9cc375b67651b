/** Decides whether a child run may be created, under the locks of the rows of its ancestors. A cancel takes the same locks. */
import { maxLiveInTree } from '@runyard/contract/limits';
import type { RunState } from '@runyard/contract/runs/states';
import type { Queryable } from '../../../platform/store/database/database.ts';
import {
  boolean,
  bytes,
  defineStatement,
  integer,
  nullable,
  text,
  uuid,
} from '../../../platform/store/database/statement.ts';
import { isBelow } from '../../executions/descendants.ts';
import type { Phase } from '../../executions/phases.ts';
import type { Attempt } from '../../executions/run-tokens/attempt.ts';

/** Reasons why no child may be created for the parent. The last four occur only for requests of an agent, and are answered with 409. */
export type ChildRefusal =
  /** 400: the parent was deleted. */
  | 'parent_gone'
  /** 409: the parent or one of its ancestors was cancelled. */
  | 'parent_cancelled'
  /** The turn of the agent that asks has ended or was cancelled. */
  | 'not_at_work'
  /** The parent has reached `child_runs.max_live`. A new child then waits in the queue; a message that would continue a child gets 409. */
  | 'too_many_children'
  /** The tree already has its maximum number of live runs. */
  | 'tree_full'
  /** The tree already has its maximum number of runs, including ended runs. */
  | 'tree_used_up';

/** Limits of a child run that an agent starts, or that the service repeats. */
export interface ChildLimits {
  /** Attempt of the agent that asks; absent: the service repeats a failed child. */
  readonly attempt?: Attempt;
  /** Maximum number of live children of the parent. */
  readonly maxLive: number;
  /** Maximum number of runs of the tree, including ended runs; absent: the request starts no new run, so this number does not matter. */
  readonly maxInTree?: number;
}

/** Locks runs in the order of their ids, as all transactions do, so that two requests that create runs in one tree cannot deadlock. */
const lockAncestors = defineStatement({
  name: 'lock_ancestors',
  text: 'SELECT id FROM runs WHERE id = ANY($1::uuid[]) ORDER BY id FOR NO KEY UPDATE',
  row: { id: uuid },
});

/**
 * This statement runs separately, after the locks. So it sees changes that other transactions committed while this transaction waited for
 * the locks. A cancel of an ancestor of the parent counts only if it is newer than the parent's execution.
 */
const readParent = defineStatement({
  name: 'read_parent_of_child',
  text: `
    SELECT p.state, e.id AS execution_id, e.phase, e.token_hash,
      EXISTS (SELECT FROM runs a WHERE a.id = ANY($2::uuid[]) AND a.cascade_at >= e.wanted_at) AS is_doomed
    FROM runs p JOIN executions e ON e.id = p.current_execution_id WHERE p.id = $1`,
  row: {
    state: text<RunState>(),
    execution_id: uuid,
    phase: text<Phase>(),
    /** NULL while the execution waits in the queue. */
    token_hash: nullable(bytes),
    is_doomed: boolean,
  },
});

const countRelatives = defineStatement({
  name: 'count_relatives',
  text: `
    SELECT count(*) AS in_all, count(*) FILTER (WHERE is_live) AS in_tree, count(*) FILTER (WHERE is_live AND c.parent_run_id = $1) AS children
    FROM runs p JOIN runs root ON root.id = $2 JOIN runs c ON ${isBelow('c', 'root')},
      LATERAL (SELECT c.state IN ('QUEUED', 'PENDING', 'CLAIMED', 'INPROGRESS', 'BLOCKED') AS is_live) l
    WHERE p.id = $1`,
  row: { in_all: integer, in_tree: integer, children: integer },
});

/**
 * Phases in which an execution may have a turn in progress. `assigned` is one of them, because the first calls of an agent may arrive
 * before the claim of its worker.
 */
const atWork: readonly Phase[] = ['assigned', 'claimed', 'running'];

/**
 * Returns the reason why the child must not be created or continued in this transaction. Returns null if this is allowed; a later cancel
 * of an ancestor then also reaches the child.
 */
export async function refuseChild(
  tx: Queryable,
  child: { readonly parentRunId: string; readonly ancestorIds: readonly string[] },
  limits?: ChildLimits,
): Promise<ChildRefusal | null> {
  const { parentRunId, ancestorIds } = child;
  await tx.query(lockAncestors, [ancestorIds]);
  const [parent] = await tx.query(readParent, [parentRunId, ancestorIds]);
  if (!parent) return 'parent_gone';
  if (parent.state === 'CANCELLED' || parent.is_doomed) return limits?.attempt ? 'not_at_work' : 'parent_cancelled';
  if (!limits) return null;
  if (limits.attempt) {
    const { executionId, tokenHash } = limits.attempt;
    const isAsking = parent.execution_id === executionId && parent.token_hash?.equals(tokenHash);
    if (!isAsking || !atWork.includes(parent.phase)) return 'not_at_work';
  }
  const root = ancestorIds.at(-1) ?? parentRunId;
  const [counts] = await tx.query(countRelatives, [parentRunId, root]);
  if (Number(counts?.in_all) >= (limits.maxInTree ?? Number.POSITIVE_INFINITY)) return 'tree_used_up';
  if (Number(counts?.in_tree) >= maxLiveInTree) return 'tree_full';
  return Number(counts?.children) >= limits.maxLive ? 'too_many_children' : null;
}
