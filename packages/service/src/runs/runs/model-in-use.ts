import type { ProviderTool } from '@runyard/contract/environments/provider-tool-names';
import type { Database, Queryable } from '../../platform/store/database/database.ts';
import { defineStatement, integer, json, nullable, text } from '../../platform/store/database/statement.ts';
import { configOfRun } from '../../team/environments/config-of-run.ts';
import { mayUse } from '../../team/environments/may-use.ts';
import { type ModelChoices, noChoices } from '../../team/models/choices.ts';
import { readModelChoices } from '../../team/models/team-models.ts';
import { appendTimelineEvent } from '../executions/timeline/timeline.ts';

/** The models that a run may use in addition to its present model, and the model choices of the run's team. */
export interface RunModels {
  /** The model with which the run was created, then the fallbacks. */
  readonly otherIds: readonly string[];
  readonly choices: ModelChoices;
  /** Tools that the environment allows the model provider to execute, outside of the sandbox. */
  readonly providerTools: readonly ProviderTool[];
}

/** The value for a run that may use only one model. */
export const oneModel: RunModels = { otherIds: [], choices: noChoices, providerTools: [] };

const readModels = defineStatement({
  name: 'read_models_of_run',
  text: `
    SELECT r.wanted_model_id, q.config->'model_fallbacks' AS fallbacks,
      CASE WHEN jsonb_typeof(c.config->'provider_tools') = 'array' THEN c.config->'provider_tools' END AS provider_tools
    FROM runs r JOIN run_requests q ON q.run_id = r.id LEFT JOIN environments env ON env.uid = r.environment_id AND ${mayUse('env', 'r')}
    CROSS JOIN LATERAL (SELECT ${configOfRun('env', 'r')} AS config) c
    WHERE r.id = $1`,
  row: {
    wanted_model_id: nullable(text()),
    fallbacks: nullable(json<readonly string[]>()),
    provider_tools: nullable(json<readonly ProviderTool[]>()),
  },
});

/** Reads the models that a run may use, and the model choices of the run's team. */
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

/**
 * If two concurrent requests change the model of a run, only the first request has an effect. The requested model is stored, and cleared
 * when the run uses it again.
 */
const switchStatement = defineStatement({
  name: 'switch_model_of_run',
  text: `
    UPDATE runs SET model_id = $3, wanted_model_id = nullif(CASE WHEN $4 THEN $3 ELSE coalesce(wanted_model_id, model_id) END, $3),
      model_switches = model_switches + 1
    WHERE id = $1 AND model_id = $2 AND model_id <> $3 RETURNING model_switches`,
  row: { model_switches: integer },
});

/** Maximum number of model changes in a run's timeline, so that a provider with many short outages does not fill the timeline. */
const maxEvents = 20;

export interface ModelSwitch {
  readonly runId: string;
  readonly executionId: string;
  readonly from: string;
  readonly to: string;
  /** Part of a sentence for people. It must not contain text from a provider. */
  readonly reason: string;
  /** True if `to` is the model with which the run was created. */
  readonly isBack?: true;
}

/**
 * Records in the run's row and in its timeline that the run uses another model from now on. Does nothing if the present model of the run is
 * not `from`.
 */
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

/** Maximum number of names of removed parts in the timeline of a run. */
const maxNames = 50;

/** Records names and returns the new names. If two requests record the same name at once, it is new for only one of the two requests. */
const noteStatement = defineStatement({
  name: 'note_removed_members_of_run',
  text: `
    WITH run AS (SELECT id, removed_members FROM runs WHERE id = $1 FOR UPDATE
    ), fresh AS (
      SELECT array(SELECT DISTINCT name FROM unnest($2::text[]) AS name WHERE NOT name = ANY (removed_members) ORDER BY name) AS names
      FROM run WHERE cardinality(removed_members) < ${maxNames}
    )
    UPDATE runs SET removed_members = removed_members || fresh.names FROM fresh WHERE runs.id = $1 AND cardinality(fresh.names) > 0
    RETURNING to_jsonb(fresh.names) AS names`,
  row: { names: json<string[]>() },
});

export interface RemovedMembers {
  readonly runId: string;
  readonly executionId: string;
  readonly modelId: string;
  /** Names of members and tools, as the sandbox wrote them. */
  readonly names: readonly string[];
}

/**
 * Returns the name if it has only plain characters, else a placeholder, because the timeline must not show any text that a sandbox chose.
 */
const safeName = (name: string): string =>
  /^[A-Za-z0-9_.:-]{1,80}$/.test(name) ? name : '(a name of other characters)';

/** Adds to the run's timeline the names of the parts that the gateway has removed from the run's model requests. Adds each name once. */
export async function noteRemovedMembers(
  db: Database,
  { runId, executionId, modelId, names }: RemovedMembers,
): Promise<void> {
  await db.transaction(async (tx) => {
    const [noted] = await tx.query(noteStatement, [runId, [...new Set(names.map(safeName))].slice(0, maxNames)]);
    if (!noted) return;
    const payload = { model_id: modelId, removed: noted.names };
    await appendTimelineEvent(tx, { runId, executionId, type: 'model_request_changed', payload });
  });
}

const chooseModelStatement = defineStatement({
  name: 'choose_model_of_run',
  // Only the first call changes the run, because a run keeps the model with which it began.
  text: 'UPDATE runs SET model_id = $3 WHERE id = $1 AND model_id = $2',
  row: {},
});

/** Replaces the placeholder `from` for a run's model by the model that the endpoint offers. */
export async function chooseModel(db: Queryable, runId: string, from: string, modelId: string): Promise<void> {
  await db.query(chooseModelStatement, [runId, from, modelId]);
}
