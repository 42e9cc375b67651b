/** Checks the model that a request names, and the fallback models. */

import type { HarnessPreset } from '@runyard/contract/agent/harness-presets/preset';
import { findHarness } from '@runyard/contract/agent/harness-presets/presets';
import type { AmbientAgentConfig } from '@runyard/contract/runs/config';
import type { Fault } from '../../../platform/fault.ts';
import { type ModelChoices, noChoices } from '../../../team/models/choices.ts';
import { isUnpriced } from '../../../team/models/is-unpriced.ts';
import { firstLocalId } from '../../../team/models/local-models.ts';
import type { Models } from '../../../team/models/models.ts';
import { speakSameProtocol } from '../../../team/models/providers.ts';
import type { ResolvedModel } from '../../../team/models/resolution.ts';
import { unpricedMessage } from '../../../team/usage/budget/admit.ts';
import { presetProblem } from './request-harness.ts';

/** `ok`: the model was resolved. `faults` may still contain faults of other members. */
export type CheckedModels =
  | {
      readonly kind: 'ok';
      readonly modelId: string;
      /** Id of a model of the request whose price is unknown; absent: the prices of all models are known. */
      readonly unpricedId?: string;
    }
  | { readonly kind: 'not_available'; readonly detail: string }
  | { readonly kind: 'model_outage'; readonly detail: string; readonly retryAfterSeconds: number };

interface Wanted {
  readonly config: AmbientAgentConfig;
  /** The result of `checkHarness`. */
  readonly harness: { readonly harness: string; readonly preset?: HarnessPreset };
  /** True if the run is created even in an outage, because the time of a schedule does not come again. */
  readonly mayWait: boolean;
  /** True if no run is created now, so a model that this service does not offer is accepted. */
  readonly keepsLacking?: boolean | undefined;
}

/** Returns the reason why the program of a preset cannot use the model; undefined if it can. */
function unusableModel(preset: HarnessPreset, { id, agentModel }: ResolvedModel): string | undefined {
  const protocol = id === firstLocalId ? 'openai-compatible' : agentModel?.protocol;
  return presetProblem(preset, { id, protocol, providerModel: agentModel?.provider_model ?? '' });
}

/**
 * Returns the model with which the run is created, even if its provider has an outage. In this case the agent's task names another model.
 */
export function checkModels(models: Models, choices: ModelChoices, wanted: Wanted, faults: Fault[]): CheckedModels {
  const { config, mayWait } = wanted;
  const { harness, preset } = wanted.harness;
  const member = config.model_id === undefined && config.harness?.model_id ? 'harness.model_id' : 'model_id';
  const resolved = models.resolve(config.model_id ?? (config.harness?.model_id || undefined), choices);
  const inOutage = !resolved.ok && resolved.reason === 'outage';
  if (!resolved.ok && resolved.reason === 'disabled')
    return { kind: 'not_available', detail: `config.${member}: ${resolved.message}.` };
  if (!resolved.ok && !inOutage) {
    if (!wanted.keepsLacking || !resolved.isLacking)
      faults.push({ path: `config.${member}`, message: resolved.message });
    return { kind: 'ok', modelId: '' };
  }
  const modelId = resolved.model.id;
  const problem = preset && unusableModel(preset, resolved.model);
  if (problem !== undefined) faults.push({ path: `config.${member}`, message: problem });
  const namedIds = [modelId];
  const callsEveryProtocol = findHarness(harness)?.isBuiltIn === true;
  for (const [index, named] of (config.model_fallbacks ?? []).entries()) {
    const path = `config.model_fallbacks.${index}`;
    // An outage of a fallback's provider does not count as a fault, because it may have ended when the fallback is needed.
    const fallback = models.resolve(named, { ...noChoices, disabledIds: choices.disabledIds });
    if (!fallback.ok && fallback.reason === 'disabled')
      return { kind: 'not_available', detail: `${path}: ${fallback.message}.` };
    if (!fallback.ok) faults.push({ path, message: fallback.message });
    else if (fallback.model.agentModel === undefined)
      faults.push({ path, message: 'must be a language model of a provider' });
    else if (!callsEveryProtocol && !speakSameProtocol(modelId, fallback.model.id))
      faults.push({
        path,
        message: `the harness ${harness} keeps the protocol of ${modelId}; name a model of the same provider, or use the harness oz`,
      });
    else {
      const unusable = preset && unusableModel(preset, fallback.model);
      if (unusable !== undefined) faults.push({ path, message: unusable });
      namedIds.push(fallback.model.id);
    }
  }
  const unpricedId = namedIds.find((id) => isUnpriced(models, id));
  if (unpricedId !== undefined && config.max_cost_usd !== undefined)
    faults.push({ path: 'config.max_cost_usd', message: unpricedMessage(unpricedId) });
  const ok = { kind: 'ok', modelId, ...(unpricedId === undefined ? {} : { unpricedId }) } as const;
  if (!inOutage || mayWait) return ok;
  const fallbacks = config.model_fallbacks ?? choices.fallbackIds;
  const isReplaceable = fallbacks.some((id) => {
    const fallback = models.resolve(id, choices);
    if (!fallback.ok || (config.max_cost_usd !== undefined && isUnpriced(models, fallback.model.id))) return false;
    return callsEveryProtocol || speakSameProtocol(modelId, fallback.model.id);
  });
  if (isReplaceable) return ok;
  const { message, retryAfterSeconds } = resolved;
  return { kind: 'model_outage', detail: `config.${member}: ${message}.`, retryAfterSeconds };
}
