import type { Queryable } from '../../../platform/store/database/database.ts';
import { defineStatement } from '../../../platform/store/database/statement.ts';

const chooseModelStatement = defineStatement({
  name: 'choose_model_of_run',
  // A run keeps the model with which it began, so only the first answer counts.
  text: 'UPDATE runs SET model_id = $3 WHERE id = $1 AND model_id = $2',
  row: {},
});

/** Replaces the placeholder `from` of a run by the model that its endpoint has. */
export async function chooseModel(db: Queryable, runId: string, from: string, modelId: string): Promise<void> {
  await db.query(chooseModelStatement, [runId, from, modelId]);
}
