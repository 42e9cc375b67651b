/** Collects the models that a service knows: from the catalogue, from RUNYARD_MODELS and from the endpoint on this machine. */
import type { CatalogueModel } from './catalogue.ts';
import type { LocalModels } from './local-models.ts';
import { type ProviderName, providerKinds } from './providers.ts';
import { findByPublicName } from './public-names.ts';

/** A model of a provider, whether the provider is configured or not. */
export interface Offer extends CatalogueModel {
  /** `provider/model`, where `model` is the name that the provider uses. */
  readonly id: string;
}

/** Returns the offers of known models. */
export const offersOf = (models: readonly CatalogueModel[]): Offer[] =>
  models.map((model) => ({ ...model, id: `${model.provider}/${model.providerModel}` }));

/** Splits the id of a model into the provider and the name that the provider uses; undefined if the id does not begin with a provider. */
export function splitModelId(id: string): { provider: ProviderName; providerModel: string } | undefined {
  const slash = id.indexOf('/');
  const provider = id.slice(0, slash);
  const providerModel = id.slice(slash + 1);
  if (slash < 0 || providerModel === '' || !Object.hasOwn(providerKinds, provider)) return undefined;
  return { provider: provider as ProviderName, providerModel };
}

/** Returns an offer for a model of which nothing but the name is known. */
export function namedOffer(provider: ProviderName, providerModel: string): Offer {
  // It is not known whether the model accepts images. So let the agent send images; the provider may refuse them.
  const visionSupported = provider !== 'local';
  const id = `${provider}/${providerModel}`;
  return { id, provider, providerModel, displayName: providerModel, visionSupported, prices: [], aliases: [] };
}

/** Returns the models of RUNYARD_MODELS that are not known yet, and a sentence for each malformed id. */
export function readExtraModels(
  ids: readonly string[],
  known: readonly Offer[],
): { readonly extra: Offer[]; readonly problems: string[] } {
  const extra: Offer[] = [];
  const problems: string[] = [];
  for (const id of ids) {
    const parts = splitModelId(id);
    if (parts === undefined) {
      problems.push(`RUNYARD_MODELS: ${JSON.stringify(id)} must begin with anthropic/, openai/, google/ or local/`);
    } else if (!known.some((offer) => offer.id === id)) {
      extra.push(namedOffer(parts.provider, parts.providerModel));
    }
  }
  return { extra, problems };
}

/** Returns the `known` offers and the models that the endpoint on this machine lists, each id once. */
export function listOffers(offers: readonly Offer[], local: LocalModels | undefined): Offer[] {
  const known = new Map(offers.map((offer) => [offer.id, offer]));
  for (const id of local?.ok === true ? local.ids : []) {
    if (!known.has(`local/${id}`)) known.set(`local/${id}`, namedOffer('local', id));
  }
  return [...known.values()];
}

/**
 * Finds a model by its id, by the name that its provider uses, by an alias, or by a name of the public service. If two providers use the
 * name, returns the model that can be used. While the endpoint on this machine has not listed its models (`localIsListed` is false), each
 * name after `local/` is accepted.
 */
export function findOffer(
  all: readonly Offer[],
  wanted: string,
  { isUsable, localIsListed }: { readonly isUsable: (offer: Offer) => boolean; readonly localIsListed: boolean },
): Offer | undefined {
  const exact = all.find((offer) => offer.id === wanted);
  if (exact !== undefined) return exact;
  const named = all.filter((offer) =>
    [offer.providerModel, ...offer.aliases].some((name) => name === wanted || `${offer.provider}/${name}` === wanted),
  );
  const candidates = named.length > 1 ? named.filter(isUsable) : named;
  if (candidates.length === 1) return candidates[0];
  const meant = named.length === 0 ? findByPublicName(all, wanted) : undefined;
  if (meant !== undefined) return meant;
  const parts = splitModelId(wanted);
  return parts?.provider === 'local' && !localIsListed ? namedOffer('local', parts.providerModel) : undefined;
}
