import type { AgentModel } from '@runyard/contract/agent/agent-protocol';
import { editDistance } from '@runyard/contract/wire/edit-distance';
import type { LocalList } from './local-list.ts';
import { firstLocalId, type LocalModels } from './local-models.ts';
import { findOffer, listOffers, type Offer } from './offers.ts';
import { type ProviderKind, type Providers, providerKinds } from './providers.ts';
import { isPublicName } from './public-names.ts';
import type { ModelResolution } from './resolution.ts';

/** The built-in model that needs no provider: it runs the `sh` blocks of the prompt. */
export const runbookId = 'runbook';

/** Returns a text that says why no model of the provider can be chosen, and which setting changes that. */
export const notUsable = ({ neededSetting, keySetting }: ProviderKind): string =>
  `no ${neededSetting === keySetting ? 'key' : 'endpoint'} set; set ${neededSetting} on the service, or let its owner enter it in the dashboard`;

/** The known models of all providers, with those that the local endpoint lists now. */
export interface KnownModels {
  offers(): readonly Offer[];
  /** Returns the first model that the local endpoint lists. */
  firstLocal(): Offer | undefined;
  /** Returns true if the provider of the model is configured. */
  isUsable(offer: Offer): boolean;
  /** Returns the model with this name, and for an unknown name the names that are similar. */
  resolveNamed(wanted: string): ModelResolution;
}

export interface KnownModelsOptions {
  /** The models of the settings and of the operator's file. */
  readonly known: readonly Offer[];
  readonly localList: () => LocalList | undefined;
  readonly upstreams: () => Providers;
}

/**
 * Returns at most `count` of `names` that are similar to `wanted`, the most similar first. A name also counts if only its part after the
 * slash is similar.
 */
function closest(wanted: string, names: readonly string[], count: number): string[] {
  const short = wanted.slice(0, 200).toLowerCase();
  return names
    .map((name) => {
      const bare = name.slice(name.indexOf('/') + 1);
      return { name, far: Math.min(editDistance(short, name.toLowerCase()), editDistance(short, bare.toLowerCase())) };
    })
    .filter(({ far }) => far <= Math.max(2, short.length / 2))
    .sort((left, right) => left.far - right.far)
    .slice(0, count)
    .map(({ name }) => name);
}

export function makeKnownModels({ known, localList, upstreams }: KnownModelsOptions): KnownModels {
  let offered: { readonly of: LocalModels | undefined; readonly offers: readonly Offer[] } | undefined;
  /**
   * Every creation of a run needs the models, so they are computed again only after the list of the local endpoint has changed.
   */
  const offers = (): readonly Offer[] => {
    const of = localList()?.current();
    if (!offered || offered.of !== of) offered = { of, offers: listOffers(known, of) };
    return offered.offers;
  };
  const firstLocal = (): Offer | undefined => offers().find(({ provider }) => provider === 'local');
  const isUsable = (offer: Offer): boolean => upstreams()[offer.provider] !== undefined;
  const find = (wanted: string): Offer | undefined =>
    findOffer(offers(), wanted, { isUsable, localIsListed: localList()?.current()?.ok === true });

  function unknownModel(wanted: string): ModelResolution {
    const usableIds = offers().filter(isUsable);
    const suggestions = closest(wanted, [...usableIds.map(({ id }) => id), runbookId], 3);
    const hint =
      suggestions.length > 0 ? `; did you mean ${suggestions.join(', ')}?` : '; GET /agent/models lists the known ones';
    const message = `unknown model ${JSON.stringify(wanted.slice(0, 200))}${hint}`;
    return { ok: false, reason: 'unknown', message, suggestions, isLacking: isPublicName(offers(), wanted) };
  }

  function resolveNamed(wanted: string): ModelResolution {
    if (wanted === runbookId) return { ok: true, model: { id: runbookId } };
    if (wanted === firstLocalId && upstreams().local !== undefined && firstLocal() === undefined)
      return { ok: true, model: { id: firstLocalId } };
    const offer = wanted === firstLocalId ? (firstLocal() ?? find(wanted)) : find(wanted);
    if (offer === undefined) return unknownModel(wanted);
    const kind = providerKinds[offer.provider];
    if (!isUsable(offer)) {
      const message = `model ${offer.id}: ${notUsable(kind)}`;
      return { ok: false, reason: 'not_configured', message, suggestions: [], isLacking: true };
    }
    const agentModel: AgentModel = {
      id: offer.id,
      protocol: kind.protocol,
      provider_model: offer.providerModel,
      gateway_path: kind.gatewayPath,
      vision_supported: offer.visionSupported,
    };
    return { ok: true, model: { id: offer.id, agentModel } };
  }

  return { offers, firstLocal, isUsable, resolveNamed };
}
