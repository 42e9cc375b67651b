import type { WorkerMessage } from '@runyard/contract/workers/worker-protocol';
import type { Queryable } from '../../../platform/store/database/database.ts';
import { defineStatement, integer } from '../../../platform/store/database/statement.ts';
import { appendTimelineEvent } from './append.ts';

type ImageStep = Extract<WorkerMessage, { type: 'image_step' }>['data'];

/**
 * Largest number of events about the image of one execution. A pull has a start, an end, and a report every few seconds; the reports
 * become rarer the longer it takes.
 */
const mostEvents = 40;

const countSteps = defineStatement({
  name: 'count_image_steps',
  text: `
    SELECT count(*)::int AS count FROM run_events v JOIN executions e ON e.id = $2 AND e.number = v.execution_number
    WHERE v.run_id = $1 AND v.payload->>'kind' = 'image'`,
  row: { count: integer },
});

const types = {
  started: 'setup_step_started',
  progress: 'setup_step_progress',
  finished: 'setup_step_finished',
} as const;

/**
 * Adds a step of a worker's pull of the image to the timeline, at most `mostEvents` for each execution. The caller has locked the run's
 * row.
 */
export async function appendImageStep(
  tx: Queryable,
  { runId, executionId }: { readonly runId: string; readonly executionId: string },
  { step, image, downloaded_bytes, total_bytes, bytes, duration_ms, error }: ImageStep,
): Promise<void> {
  const [found] = await tx.query(countSteps, [runId, executionId]);
  if ((found?.count ?? 0) >= mostEvents) return;
  const payload = {
    step_id: executionId,
    kind: 'image',
    name: image,
    downloaded_bytes,
    total_bytes,
    bytes,
    duration_ms,
    error,
  };
  await appendTimelineEvent(tx, { runId, executionId, type: types[step], payload });
}
