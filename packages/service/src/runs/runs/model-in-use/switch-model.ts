import type { Database } from '../../../platform/store/database/database.ts';
import { defineStatement, integer } from '../../../platform/store/database/statement.ts';
import { appendTimelineEvent } from '../../executions/timeline/timeline.ts';

/**
 * Of two requests at once that leave the same model, only one changes the run. The requested model is stored, and cleared when the run
 * uses it again.
 */
const switchStatement = defineStatement({
  name: 'switch_model_of_run',
  text: `
    UPDATE runs SET model_id = $3, wanted_model_id = nullif(CASE WHEN $4 THEN $3 ELSE coalesce(wanted_model_id, model_id) END, $3),
      model_switches = model_switches + 1
    WHERE id = $1 AND model_id = $2 AND model_id <> $3 RETURNING model_switches`,
  row: { model_switches: integer },
});

/** Largest number of changes that a run's timeline names, so that a provider with short outages does not fill it. */
const maxEvents = 20;

export interface ModelSwitch {
  readonly runId: string;
  readonly executionId: string;
  readonly from: string;
  readonly to: string;
  /** Part of a sentence for people, without text of a provider. */
  readonly reason: string;
  /** True: `to` is the model that the run was created with. */
  readonly isBack?: true;
}

/** Records that the run uses another model from now on, in the run and in its timeline. Does nothing if the run does not use `from`. */
export async function switchModel(
  db: Database,
  { runId, executionId, from, to, reason, isBack }: ModelSwitch,
): Promise<void> {
  await db.transaction(async (tx) => {
    const [switched] = await tx.query(switchStatement, [runId, from, to, isBack === true]);
    if (!switched || switched.model_switches > maxEvents) return;
    const payload = { from_model_id: from, to_model_id: to, reason };
    await appendTimelineEvent(tx, { runId, executionId, type: 'model_switched', payload, changesRun: true });
  });
}
