/**
 * The cancel of a run ends the runs below it. `runs.cascade_at` says that there is something left to do, so that any
 * process can go on with it. What a person continued after the cancel is wanted anew and stays.
 */

import type { RunState } from '@runyard/contract/states';
import type { Queryable, Statement } from '../../store/database/database.ts';
import { runChannel } from '../channels.ts';
import type { Engine } from '../engine.ts';
import { cancelLocked } from './cancel-locked.ts';

/** Live runs `c` below `a` whose launch `e` was wanted before the cancel of `a`. */
const doomed = `
  FROM runs a
  JOIN run_facets f ON f.team_id = a.team_id AND f.facet = 'ancestor:' || a.id
  JOIN runs c ON c.id = f.run_id
  JOIN executions e ON e.id = c.current_execution_id
  WHERE a.id = $1 AND c.state IN ('QUEUED', 'PENDING', 'CLAIMED', 'INPROGRESS', 'BLOCKED') AND e.wanted_at <= a.cascade_at`;

const findDoomed: Statement = { name: 'find_doomed_descendants', text: `SELECT c.id ${doomed} ORDER BY c.id` };

const lockRun: Statement = {
  name: 'lock_doomed_run',
  text: 'SELECT state, current_execution_id FROM runs WHERE id = $1 FOR UPDATE',
};

/** After the lock, in a statement of its own: a follow-up may have come first. */
const isDoomed: Statement = { name: 'is_doomed', text: `SELECT ${doomed} AND c.id = $2` };

/** Whoever waits to delete the run is told. No descendant can join those that are doomed: creating one locks the rows of its ancestors and looks for a cancel. */
const forget: Statement = {
  name: 'forget_finished_cascade',
  text: `UPDATE runs SET cascade_at = NULL WHERE id = $1 AND cascade_at IS NOT NULL AND NOT EXISTS (SELECT ${doomed})
    RETURNING pg_notify('${runChannel}', id::text)`,
};

async function cancelDoomed(engine: Engine, tx: Queryable, ancestorId: string, runId: string): Promise<boolean> {
  const [run] = await tx.query<{ state: RunState; current_execution_id: string }>(lockRun, [runId]);
  if (!run || (await tx.query(isDoomed, [ancestorId, runId])).length === 0) return false;
  const outcome = await cancelLocked(engine, tx, {
    runId,
    executionId: run.current_execution_id,
    state: run.state,
    payload: { ancestor_run_id: ancestorId },
    status: { message: `Cancelled together with run ${ancestorId}, which it works for.` },
  });
  return outcome === 'cancelled';
}

/** Cancels what is live below a cancelled run. PENDING ones are left for the next sweep: they last 30 s at most. */
export async function cancelDescendants(engine: Engine, runId: string): Promise<void> {
  const { db } = engine;
  for (const { id } of await db.query<{ id: string }>(findDoomed, [runId])) {
    await db.transaction((tx) => cancelDoomed(engine, tx, runId, id));
  }
  await db.query(forget, [runId]);
}

const findCancelledAbove: Statement = {
  name: 'find_cancelled_above',
  text: `
    SELECT a.id FROM executions e JOIN runs c ON c.id = e.run_id AND c.current_execution_id = e.id JOIN runs a ON a.id = ANY(c.ancestor_ids)
    WHERE e.id = $1 AND e.wanted_at <= a.cascade_at ORDER BY a.cascade_at LIMIT 1`,
};

/**
 * Cancels the run where one above it was cancelled and the cancel has not reached it yet: whatever happens to it after
 * that is no failure. The transaction has locked its row. True: it was cancelled.
 */
export async function followCancel(
  engine: Engine,
  tx: Queryable,
  run: { readonly runId: string; readonly executionId: string },
): Promise<boolean> {
  const [above] = await tx.query<{ id: string }>(findCancelledAbove, [run.executionId]);
  return above !== undefined && (await cancelDoomed(engine, tx, above.id, run.runId));
}

const findCascades: Statement = {
  name: 'find_unfinished_cascades',
  text: 'SELECT id FROM runs WHERE cascade_at IS NOT NULL ORDER BY cascade_at LIMIT 200',
};

/** Goes on with every cancel that has not reached all descendants yet. */
export async function finishCascades(engine: Engine): Promise<void> {
  for (const { id } of await engine.db.query<{ id: string }>(findCascades, [])) await cancelDescendants(engine, id);
}
