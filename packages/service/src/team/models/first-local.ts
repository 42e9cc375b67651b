/** The default model while RUNYARD_MODEL_BASE_URL is configured and has not listed its models. */
import type { Model } from '@runyard/contract/team/models';
import type { LocalModels } from './local-models.ts';
import { endpointOf, type Upstream } from './providers.ts';

/** Id that means the first model of the endpoint's list. A run that begins with it gets that model. */
export const firstLocalId = 'local/auto';

const reasonOf = (local: LocalModels | undefined): string => {
  if (local === undefined) return 'it was not asked yet';
  return local.ok ? 'it lists no model' : local.reason;
};

/** Returns the entry in the list of models for the first model of the endpoint. */
export function unlistedModel(upstream: Upstream, local: LocalModels | undefined): Model {
  const endpoint = endpointOf(upstream);
  return {
    id: firstLocalId,
    display_name: `First model of ${endpoint}`,
    provider: 'UNKNOWN',
    vision_supported: false,
    description: `The models of RUNYARD_MODEL_BASE_URL (${endpoint}) are not known: ${reasonOf(local)}.`,
    disable_reason: 'PROVIDER_OUTAGE',
  };
}

/** Returns why a run cannot begin with the first model of the endpoint, and what to do. */
export function noListMessage(upstream: Upstream, local: LocalModels | undefined): string {
  const advice = local?.ok
    ? 'Load a model there (Ollama: `ollama pull qwen3`), then run again.'
    : 'Start the endpoint, or correct RUNYARD_MODEL_BASE_URL and start Runyard again. If it lists no models, name one with RUNYARD_DEFAULT_MODEL=local/NAME.';
  return `The models of the endpoint ${endpointOf(upstream)} (RUNYARD_MODEL_BASE_URL) are not known: ${reasonOf(local)}. ${advice}`;
}
