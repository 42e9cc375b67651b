/** Whether a run may be created below others: decided under the locks of their rows, which a cancel takes too. */
import type { RunState } from '@runyard/contract/states';
import type { Queryable, Statement } from '../store/database.ts';

/** `parent_gone` 400: it was deleted; `parent_cancelled` 409: it, or a run above it, was cancelled. */
export type ChildRefusal = 'parent_gone' | 'parent_cancelled';

/** In one order everywhere, so that two creates in one tree cannot wait for one another. */
const lockAncestors: Statement = {
  name: 'lock_ancestors',
  text: 'SELECT id FROM runs WHERE id = ANY($1::uuid[]) ORDER BY id FOR NO KEY UPDATE',
};

/** After the locks, in a statement of its own. A cancel above that was made before someone wanted the parent's launch does not concern it. */
const readParent: Statement = {
  name: 'read_parent_of_child',
  text: `
    SELECT p.state, EXISTS (SELECT FROM runs a WHERE a.id = ANY($2::uuid[]) AND a.cascade_at >= e.wanted_at) AS is_doomed
    FROM runs p JOIN executions e ON e.id = p.current_execution_id WHERE p.id = $1`,
};

/** Null: the child may be created in this transaction; no cancel above can overlook it. */
export async function refuseChild(
  tx: Queryable,
  child: { readonly parentRunId: string; readonly ancestorIds: readonly string[] },
): Promise<ChildRefusal | null> {
  await tx.query(lockAncestors, [child.ancestorIds]);
  const [parent] = await tx.query<{ state: RunState; is_doomed: boolean }>(readParent, [
    child.parentRunId,
    child.ancestorIds,
  ]);
  if (!parent) return 'parent_gone';
  return parent.state === 'CANCELLED' || parent.is_doomed ? 'parent_cancelled' : null;
}
