import type { Queryable } from '../../../platform/store/database/database.ts';
import { defineStatement } from '../../../platform/store/database/statement.ts';
import { recordSandbox, recordSandboxOfWorker } from '../lease/record-sandbox.ts';
import { appendTimelineEvent } from './append.ts';

const completeEvent = defineStatement({
  name: 'complete_sandbox_event',
  text: `
    UPDATE run_events v SET payload = v.payload || $3::jsonb FROM executions e
    WHERE e.id = $2 AND v.run_id = $1 AND v.execution_number = e.number AND v.event_type = 'worker_container_ready'
      AND NOT v.payload ? 'spawn_ms'`,
  row: {},
});

interface Target {
  readonly runId: string;
  readonly executionId: string;
}

/** Adds a sandbox to the timeline, with what its worker reports about it. The caller holds the run's row. */
export async function addReadySandbox(
  tx: Queryable,
  target: Target,
  sandbox: { readonly backend: string; readonly spawn_ms: number },
): Promise<void> {
  if (await recordSandbox(tx, target.executionId, { backend: sandbox.backend }))
    return await appendTimelineEvent(tx, { ...target, type: 'worker_container_ready', payload: { ...sandbox } });
  // The agent was faster than the worker, whose backend may look at its sandboxes only from time to time.
  await tx.query(completeEvent, [target.runId, target.executionId, JSON.stringify(sandbox)]);
}

/**
 * Adds the sandbox of an agent that is at work to the timeline, if its worker has not reported the sandbox yet. The caller holds the
 * run's row.
 */
export async function addSandboxOfAgent(tx: Queryable, target: Target): Promise<void> {
  const worker = await recordSandboxOfWorker(tx, target.executionId);
  if (worker) await appendTimelineEvent(tx, { ...target, type: 'worker_container_ready', payload: { ...worker } });
}
