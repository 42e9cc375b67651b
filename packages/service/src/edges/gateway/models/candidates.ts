/** Finds the models that may take a request of a run. */

import type { RunModels } from '../../../runs/runs/model-in-use.ts';
import { outageOf } from '../../../team/models/choices.ts';
import type { Models, ModelTarget } from '../../../team/models/models.ts';
import { type ProviderName, speakSameProtocol } from '../../../team/models/providers.ts';
import type { Endpoint } from './endpoints.ts';

export interface Candidates {
  /** The run's own model: the sandbox sends its requests for this model. */
  readonly own: ModelTarget;
  /** Names that the request may use for its model. */
  readonly names: readonly string[];
  /** The models in the order in which the gateway tries them. `own` is the first unless its provider has an outage. */
  readonly targets: readonly ModelTarget[];
}

/** Returns the models that may handle a request at `endpoint` of `provider`; null if the run has no model of this provider. */
export function findCandidates(
  models: Pick<Models, 'target'>,
  currentId: string,
  { otherIds, choices }: RunModels,
  provider: ProviderName,
  endpoint: Endpoint,
): Candidates | null {
  const ids = [...new Set([currentId, ...otherIds])].filter((id) => !choices.disabledIds.includes(id));
  const targets = ids.map((id) => models.target(id)).filter((target) => target !== undefined);
  const ofProvider = targets.filter((target) => target.provider === provider);
  const [own] = ofProvider;
  if (own === undefined) return null;
  // The endpoints of compatible providers have only chat completions in common.
  const isShared = endpoint.kind !== 'models' && endpoint.path === '/chat/completions';
  const able = targets.filter(
    (target) => target.provider === provider || (isShared && speakSameProtocol(own.id, target.id)),
  );
  const works = (target: ModelTarget): boolean => outageOf(choices, target.provider) === undefined;
  return {
    own,
    names: ofProvider.map(({ providerModel }) => providerModel),
    targets: [...able.filter(works), ...able.filter((target) => !works(target))],
  };
}

type Generating = Exclude<Endpoint, { kind: 'models' }>;

/** Returns the endpoint for another model. Google's path contains the name of the model. */
export function endpointFor(endpoint: Generating, { providerModel }: ModelTarget): Generating {
  if (endpoint.model === undefined || endpoint.model === providerModel) return endpoint;
  const path = endpoint.path.replace(`/models/${endpoint.model}:`, () => `/models/${providerModel}:`);
  return { ...endpoint, model: providerModel, path };
}
