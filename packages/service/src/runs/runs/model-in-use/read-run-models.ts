import type { ProviderTool } from '@runyard/contract/environments/provider-tools';
import type { Queryable } from '../../../platform/store/database/database.ts';
import { defineStatement, json, nullable, text } from '../../../platform/store/database/statement.ts';
import { mayUse } from '../../../team/environments/may-use.ts';
import { type ModelChoices, noChoices } from '../../../team/models/choices.ts';
import { readModelChoices } from '../../../team/models/team-models.ts';

/** The models that a run may use besides the one that it uses now, and what its team has chosen. */
export interface RunModels {
  /** The model that it was created with, then the fallbacks. */
  readonly otherIds: readonly string[];
  readonly choices: ModelChoices;
  /** Tools of the provider that the environment allows outside of the sandbox. */
  readonly providerTools: readonly ProviderTool[];
}

/** Models of a run that may use one model only. */
export const oneModel: RunModels = { otherIds: [], choices: noChoices, providerTools: [] };

const readModels = defineStatement({
  name: 'read_models_of_run',
  text: `
    SELECT r.wanted_model_id, r.config->'model_fallbacks' AS fallbacks,
      CASE WHEN jsonb_typeof(env.config->'provider_tools') = 'array' THEN env.config->'provider_tools' END AS provider_tools
    FROM runs r LEFT JOIN environments env ON env.uid = r.environment_id AND ${mayUse('env', 'r')}
    WHERE r.id = $1`,
  row: {
    wanted_model_id: nullable(text()),
    fallbacks: nullable(json<readonly string[]>()),
    provider_tools: nullable(json<readonly ProviderTool[]>()),
  },
});

/** Reads the models of a run, and what they may do. */
export async function readRunModels(
  db: Queryable,
  { runId, teamId }: { readonly runId: string; readonly teamId: string },
): Promise<RunModels> {
  const [[run], choices] = await Promise.all([db.query(readModels, [runId]), readModelChoices(db, teamId)]);
  const wanted = run?.wanted_model_id ?? null;
  const fallbackIds = run?.fallbacks ?? choices.fallbackIds;
  const otherIds = [...(wanted === null ? [] : [wanted]), ...fallbackIds];
  return { otherIds, choices, providerTools: run?.provider_tools ?? [] };
}
