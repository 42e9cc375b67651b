/** Notes in the log of a webhook what automations made of deliveries. */
import type { AutomationOutcome } from '@runyard/contract/webhooks';
import type { Queryable } from '../../store/database/database.ts';
import { defineStatement } from '../../store/database/statement.ts';

/** Ids of the runs that a delivery has started, and the outcome of each automation that selects its webhook. */
export interface OutcomeOfDelivery {
  readonly id: string;
  readonly runs: readonly string[];
  readonly outcomes: readonly AutomationOutcome[];
}

/** Returns the SQL that writes outcomes, for statements that write more than them. `notes` names a parameter: a JSON array. */
export const noteOutcomesOf = (notes: string): string => `
  UPDATE webhook_deliveries d SET runs = ARRAY(SELECT jsonb_array_elements_text(i.runs)), outcomes = i.outcomes
  FROM jsonb_to_recordset(${notes}::jsonb) AS i(id uuid, runs jsonb, outcomes jsonb) WHERE d.id = i.id`;

const note = defineStatement({ name: 'note_outcomes_of_webhook_deliveries', text: noteOutcomesOf('$1'), row: {} });

/** Writes the outcomes of deliveries whose entries the transaction has just written. */
export async function noteOutcomes(tx: Queryable, notes: readonly OutcomeOfDelivery[]): Promise<void> {
  if (notes.length > 0) await tx.query(note, [JSON.stringify(notes)]);
}
