/** Whether a run may be created below others: decided under the locks of their rows, which a cancel takes too. */
import { maxLiveInTree } from '@runyard/contract/child-runs';
import type { RunState } from '@runyard/contract/states';
import type { Attempt } from '../../executions/run-tokens/attempt.ts';
import type { Phase } from '../../executions/transitions/transition.ts';
import type { Queryable, Statement } from '../../store/database/database.ts';

/**
 * `parent_gone` 400: it was deleted; `parent_cancelled` 409: it, or a run above it, was cancelled. Of an agent's request,
 * all 409: `not_at_work`: its turn is over or was cancelled; `too_many_children`, `tree_full`: some must end first;
 * `tree_used_up`: no more are started in this tree.
 */
export type ChildRefusal =
  | 'parent_gone'
  | 'parent_cancelled'
  | 'not_at_work'
  | 'too_many_children'
  | 'tree_full'
  | 'tree_used_up';

/** What holds for a child that an agent starts. */
export interface ChildLimits {
  /** Who asks: an agent that is at work. */
  readonly attempt: Attempt;
  /** Live children of the parent. */
  readonly maxLive: number;
  /** Runs of the tree, ended ones included; absent: no new one is started. */
  readonly maxInTree?: number;
}

/** In one order everywhere, so that two creates in one tree cannot wait for one another. */
const lockAncestors: Statement = {
  name: 'lock_ancestors',
  text: 'SELECT id FROM runs WHERE id = ANY($1::uuid[]) ORDER BY id FOR NO KEY UPDATE',
};

/** After the locks, in a statement of its own. A cancel above that was made before someone wanted the parent's launch does not concern it. */
const readParent: Statement = {
  name: 'read_parent_of_child',
  text: `
    SELECT p.state, e.id AS execution_id, e.phase, e.token_hash,
      EXISTS (SELECT FROM runs a WHERE a.id = ANY($2::uuid[]) AND a.cascade_at >= e.wanted_at) AS is_doomed
    FROM runs p JOIN executions e ON e.id = p.current_execution_id WHERE p.id = $1`,
};

interface ParentRow {
  state: RunState;
  execution_id: string;
  phase: Phase;
  /** Null: it waits in the queue. */
  token_hash: Buffer | null;
  is_doomed: boolean;
}

const countLive: Statement = {
  name: 'count_relatives',
  text: `
    SELECT count(*) AS in_all, count(*) FILTER (WHERE is_live) AS in_tree, count(*) FILTER (WHERE is_live AND c.parent_run_id = $1) AS children
    FROM runs p JOIN run_facets f ON f.team_id = p.team_id AND f.facet = 'ancestor:' || $2::uuid JOIN runs c ON c.id = f.run_id,
      LATERAL (SELECT c.state IN ('QUEUED', 'PENDING', 'CLAIMED', 'INPROGRESS', 'BLOCKED') AS is_live) l
    WHERE p.id = $1`,
};

/** Phases in which an agent plays a turn. The first calls of an agent may come before the news that it was claimed. */
const atWork: readonly Phase[] = ['assigned', 'claimed', 'running'];

/** Null: the child may be created, or continued, in this transaction; no cancel above can overlook it. */
export async function refuseChild(
  tx: Queryable,
  child: { readonly parentRunId: string; readonly ancestorIds: readonly string[] },
  limits?: ChildLimits,
): Promise<ChildRefusal | null> {
  const { parentRunId, ancestorIds } = child;
  await tx.query(lockAncestors, [ancestorIds]);
  const [parent] = await tx.query<ParentRow>(readParent, [parentRunId, ancestorIds]);
  if (!parent) return 'parent_gone';
  if (parent.state === 'CANCELLED' || parent.is_doomed) return limits ? 'not_at_work' : 'parent_cancelled';
  if (!limits) return null;
  const { executionId, tokenHash } = limits.attempt;
  const isAsking = parent.execution_id === executionId && parent.token_hash?.equals(tokenHash);
  if (!isAsking || !atWork.includes(parent.phase)) return 'not_at_work';
  const root = ancestorIds.at(-1) ?? parentRunId;
  const [live] = await tx.query<{ in_all: number; in_tree: number; children: number }>(countLive, [parentRunId, root]);
  if (Number(live?.in_all) >= (limits.maxInTree ?? Number.POSITIVE_INFINITY)) return 'tree_used_up';
  if (Number(live?.children) >= limits.maxLive) return 'too_many_children';
  return Number(live?.in_tree) >= maxLiveInTree ? 'tree_full' : null;
}
