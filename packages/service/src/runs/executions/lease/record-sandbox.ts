import type { Queryable } from '../../../platform/store/database/database.ts';
import { defineStatement, text, uuid } from '../../../platform/store/database/statement.ts';
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

const record = defineStatement({
  name: 'record_sandbox',
  text: `
    UPDATE executions SET sandbox = $2::jsonb WHERE id = $1 AND phase IN ${slotPhases} AND sandbox IS NULL
    RETURNING id`,
  row: { id: uuid },
});

/** Records which backend created the sandbox of an execution. Returns false if that is recorded already, or the turn has ended. */
export async function recordSandbox(
  tx: Queryable,
  executionId: string,
  sandbox: { readonly backend: string },
): Promise<boolean> {
  return (await tx.query(record, [executionId, JSON.stringify(sandbox)])).length === 1;
}

/** Does the same for an agent that is at work, with what its worker reports about all of its sandboxes. Undefined: nothing was recorded. */
export async function recordSandboxOfWorker(
  tx: Queryable,
  executionId: string,
): Promise<{ readonly backend: string } | undefined> {
  return (await tx.query(recordOfWorker, [executionId]))[0];
}
