/**
 * Frees the slot of an execution while its agent only waits for other runs. Otherwise the runs for which the agent waits might never get a
 * slot.
 */

import { hostRulesFeature, imagesFeature, serviceImagesFeature } from '@runyard/contract/workers/worker-protocol';
import type { Queryable } from '../../../platform/store/database/database.ts';
import { defineStatement } from '../../../platform/store/database/statement.ts';
import { tellAgent, tellQueue } from '../notices.ts';
import { workingPhases } from '../phases.ts';
import { asksAboutHosts, servesPool, startsImages, takesRuns } from './may-take.ts';

/** Names an attempt of an execution. */
interface AttemptKey {
  readonly executionId: string;
  /** SHA-256 of the run token. */
  readonly tokenHash: Buffer;
}

/**
 * SQL: at least one of the runs could use a slot. Such a run was assigned to a worker and its execution has not ended, or the run is
 * queued and a connected worker can execute it. If no run meets this condition, no run could use the slot that the waiting agent would
 * free.
 */
const canUseSlot = (runIds: string): string => `EXISTS (
  SELECT FROM runs r JOIN run_requests q ON q.run_id = r.id JOIN executions o ON o.id = r.current_execution_id WHERE r.id = ANY(${runIds}::uuid[]) AND o.phase <> 'ended'
    AND (o.phase <> 'queued' OR EXISTS (
      SELECT FROM worker_connections c WHERE ${servesPool('c', 'o.pool', 'o.team_id')} AND ${takesRuns('c')}
        AND (o.image IS NULL OR c.sandbox IS NULL OR c.sandbox->'features' ? '${imagesFeature}')
        AND (NOT ${asksAboutHosts('q')} OR c.sandbox->'features' ? '${hostRulesFeature}')
        AND (c.sandbox->'features' ? '${serviceImagesFeature}' OR ${startsImages('r')} IS NOT TRUE))))`;

/** SQL: the value, or NULL if the execution was already marked. */
const ifNew = (value: string): string =>
  `CASE WHEN before.awaiting_until > clock_timestamp() THEN NULL ELSE ${value} END`;

/**
 * Marks the execution as waiting. Notifies the dispatcher only if the execution was not marked before, because only then a slot becomes
 * free.
 */
const mark = defineStatement({
  name: 'mark_awaiting',
  text: `
    UPDATE executions e SET awaiting_until = clock_timestamp() + make_interval(secs => $2::float8 / 1000) FROM executions before
    WHERE e.id = $1 AND e.token_hash = $3 AND before.id = e.id AND e.phase IN ${workingPhases}
      AND coalesce(e.interrupted_turn, 0) <= e.finished_turns AND ${canUseSlot('$4')}
    RETURNING ${tellAgent(ifNew('e.run_id'))}, ${tellQueue(ifNew('e.pool'))}`,
  row: {},
});

/**
 * Marks the attempt's execution as waiting for other runs, for at most `forMs` milliseconds. Does nothing if none of the runs `runIds` can
 * use the slot, or if the turn was interrupted. Returns whether the execution was marked.
 */
export async function markAwaiting(
  db: Queryable,
  { executionId, tokenHash }: AttemptKey,
  forMs: number,
  runIds: readonly string[],
): Promise<boolean> {
  return (await db.query(mark, [executionId, forMs, tokenHash, runIds])).length > 0;
}

const unmark = defineStatement({
  name: 'unmark_awaiting',
  text: `
    UPDATE executions SET awaiting_until = NULL WHERE id = $1 AND token_hash = $2 AND awaiting_until IS NOT NULL
    RETURNING ${tellAgent('run_id')}`,
  row: {},
});

/** Removes the mark when the agent continues to work. The execution then uses a slot again. */
export async function unmarkAwaiting(db: Queryable, { executionId, tokenHash }: AttemptKey): Promise<void> {
  await db.query(unmark, [executionId, tokenHash]);
}
