import type { Queryable } from '../../store/database/database.ts';
import { defineStatement } from '../../store/database/statement.ts';

const chooseModelStatement = defineStatement({
  name: 'choose_model_of_run',
  // A run keeps the model that it began with: only the first answer counts.
  text: 'UPDATE runs SET model_id = $3 WHERE id = $1 AND model_id = $2',
  row: {},
});

/** Gives a run that was created with the stand-in `from` the model that its endpoint turned out to have. */
export async function chooseModel(db: Queryable, runId: string, from: string, modelId: string): Promise<void> {
  await db.query(chooseModelStatement, [runId, from, modelId]);
}
