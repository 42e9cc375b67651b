import type { Queryable } from '../../../platform/store/database/database.ts';
import { defineStatement } from '../../../platform/store/database/statement.ts';

const addDropped = defineStatement({
  name: 'count_dropped_output',
  text: 'UPDATE runs SET dropped_events = dropped_events + $2, dropped_lines = dropped_lines + $3 WHERE id = $1',
  row: {},
});

/** Counts events and transcript lines that exceed the run's limits. The caller has locked the run's row. */
export async function countDropped(
  tx: Queryable,
  runId: string,
  { droppedEvents, droppedLines }: { readonly droppedEvents: number; readonly droppedLines: number },
): Promise<void> {
  if (droppedEvents + droppedLines > 0) await tx.query(addDropped, [runId, droppedEvents, droppedLines]);
}
