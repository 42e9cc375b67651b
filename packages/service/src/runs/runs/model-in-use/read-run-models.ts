import type { Queryable } from '../../../platform/store/database/database.ts';
import { defineStatement, json, nullable, text } from '../../../platform/store/database/statement.ts';
import { type ModelChoices, noChoices } from '../../../team/models/choices.ts';
import { readModelChoices } from '../../../team/models/team-models.ts';

/** The models that a run may use besides the one that it uses now, and what its team has chosen. */
export interface RunModels {
  /** The model that it was created with, then the fallbacks. */
  readonly otherIds: readonly string[];
  readonly choices: ModelChoices;
}

/** Models of a run that may use one model only. */
export const oneModel: RunModels = { otherIds: [], choices: noChoices };

const readModels = defineStatement({
  name: 'read_models_of_run',
  text: `SELECT wanted_model_id, config->'model_fallbacks' AS fallbacks FROM runs WHERE id = $1`,
  row: { wanted_model_id: nullable(text()), fallbacks: nullable(json<readonly string[]>()) },
});

/** Reads the models of a run. */
export async function readRunModels(
  db: Queryable,
  { runId, teamId }: { readonly runId: string; readonly teamId: string },
): Promise<RunModels> {
  const [[run], choices] = await Promise.all([db.query(readModels, [runId]), readModelChoices(db, teamId)]);
  const wanted = run?.wanted_model_id ?? null;
  const fallbackIds = run?.fallbacks ?? choices.fallbackIds;
  return { otherIds: [...(wanted === null ? [] : [wanted]), ...fallbackIds], choices };
}
