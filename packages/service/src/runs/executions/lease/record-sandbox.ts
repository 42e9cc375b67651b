import type { Queryable } from '../../../platform/store/database/database.ts';
import { defineStatement, text, uuid } from '../../../platform/store/database/statement.ts';
import { appendTimelineEvent } from '../timeline/append.ts';
import { slotPhases } from '../transitions/phases.ts';

/** A worker reports the backend of all of its sandboxes when it connects. Those of other programs report none. */
const recordOfWorker = defineStatement({
  name: 'record_sandbox_of_worker',
  text: `
    UPDATE executions e SET sandbox = jsonb_build_object('backend', c.sandbox->>'backend') FROM worker_connections c
    WHERE e.id = $1 AND e.sandbox IS NULL AND c.id = e.connection_id AND c.sandbox->>'backend' IS NOT NULL
    RETURNING c.sandbox->>'backend' AS backend`,
  row: { backend: text() },
});

const completeEvent = defineStatement({
  name: 'complete_sandbox_event',
  text: `
    UPDATE run_events v SET payload = v.payload || $3::jsonb FROM executions e
    WHERE e.id = $2 AND v.run_id = $1 AND v.execution_number = e.number AND v.event_type = 'worker_container_ready'
      AND NOT v.payload ? 'spawn_ms'`,
  row: {},
});

const record = defineStatement({
  name: 'record_sandbox',
  text: `
    UPDATE executions SET sandbox = $2::jsonb WHERE id = $1 AND phase IN ${slotPhases} AND sandbox IS NULL
    RETURNING id`,
  row: { id: uuid },
});

/** Records which backend created the sandbox of an execution. Returns false if that is recorded already, or the turn has ended. */
async function recordSandbox(
  tx: Queryable,
  executionId: string,
  sandbox: { readonly backend: string },
): Promise<boolean> {
  return (await tx.query(record, [executionId, JSON.stringify(sandbox)])).length === 1;
}

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
  const [worker] = await tx.query(recordOfWorker, [target.executionId]);
  if (worker) await appendTimelineEvent(tx, { ...target, type: 'worker_container_ready', payload: { ...worker } });
}
