import { findHarness } from '@runyard/contract/agent/harness-presets/presets';
import type { Database } from '../../../platform/store/database/database.ts';
import { isUnpriced } from '../../../team/models/is-unpriced.ts';
import { firstLocalId } from '../../../team/models/local-models.ts';
import type { Models } from '../../../team/models/models.ts';
import { speakSameProtocol } from '../../../team/models/providers.ts';
import type { ResolvedModel, TaskModelResolution } from '../../../team/models/resolution.ts';
import { readModelChoices } from '../../../team/models/team-models.ts';
import { hasCostLimit } from '../../../team/usage/budget/read-budgets.ts';
import type { RunSession } from '../../executions/run-tokens/sessions.ts';
import { chooseModel, switchModel } from '../../runs/model-in-use.ts';
import type { TaskRow } from './read-task-row.ts';

/**
 * Returns the model for an execution that begins. Normally this is the model with which the run was created. If the provider of this model
 * has an outage, returns the first fallback that is available and that the harness can use. The fallback then becomes the model of the run.
 * If there is no such fallback, returns the model with the outage, and the gateway still tries the provider.
 */
export async function chooseTaskModel(
  { db, models }: { readonly db: Database; readonly models: Pick<Models, 'resolve' | 'resolveForTask' | 'target'> },
  session: Pick<RunSession, 'runId' | 'executionId' | 'teamId' | 'ancestorIds'>,
  row: Pick<TaskRow, 'model_id' | 'wanted_model_id' | 'config' | 'harness'>,
): Promise<TaskModelResolution> {
  const { runId, executionId } = session;
  const wanted = row.wanted_model_id ?? row.model_id;
  const choices = await readModelChoices(db, session.teamId);
  const resolution = await models.resolveForTask(wanted, choices);
  if (resolution.ok) {
    const { id } = resolution.model;
    if (row.wanted_model_id !== null) {
      const reason = 'the provider works again';
      await switchModel(db, { runId, executionId, from: row.model_id, to: id, reason, isBack: true });
    } else if (wanted === firstLocalId && id !== wanted) await chooseModel(db, runId, wanted, id);
    return resolution;
  }
  if (resolution.reason !== 'outage' && resolution.reason !== 'unreachable') return resolution;
  for (const named of row.config.model_fallbacks ?? choices.fallbackIds) {
    const fallback = models.resolve(named, choices);
    if (!fallback.ok || !mayUse(row.harness, wanted, fallback.model)) continue;
    const to = fallback.model.id;
    if (isUnpriced(models, to) && (await hasCostLimit(db, session))) continue;
    const reason = resolution.reason === 'outage' ? 'its provider has an outage' : 'its endpoint lists no models';
    await switchModel(db, { runId, executionId, from: row.model_id, to, reason });
    return fallback;
  }
  return resolution.reason === 'outage' ? { ok: true, model: resolution.model } : resolution;
}

/**
 * The built-in harness can use models of every protocol. Every other harness can use only models that have the same protocol as the model
 * with which the run was created.
 */
const mayUse = (harness: string, wanted: string, { id, agentModel }: ResolvedModel): boolean =>
  agentModel !== undefined && (findHarness(harness)?.isBuiltIn === true || speakSameProtocol(wanted, id));
