import type { Queryable } from '../../../platform/store/database/database.ts';
import { defineStatement, uuid } from '../../../platform/store/database/statement.ts';
import { slotPhases } from '../transitions/phases.ts';

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
