/** The models that a service knows: those of the catalogue, of RUNYARD_MODELS and of the endpoint on this machine. */
import { catalogue } from './catalogue.ts';
import type { LocalModels } from './local-models.ts';
import type { Price } from './price.ts';
import { type ProviderName, providerKinds } from './providers.ts';

/** A model of a provider, whether the provider is configured or not. */
export interface Offer {
  /** `provider/providerModel`. */
  readonly id: string;
  readonly provider: ProviderName;
  readonly providerModel: string;
  readonly displayName: string;
  readonly visionSupported: boolean;
  readonly prices: readonly Price[];
  readonly aliases: readonly string[];
}

const fromCatalogue: readonly Offer[] = catalogue.map((model) => ({
  ...model,
  id: `${model.provider}/${model.providerModel}`,
  aliases: model.aliases ?? [],
}));

/** Splits the id of a model into provider and the provider's own name; undefined if it begins with no provider. */
export function splitModelId(id: string): { provider: ProviderName; providerModel: string } | undefined {
  const slash = id.indexOf('/');
  const provider = id.slice(0, slash);
  const providerModel = id.slice(slash + 1);
  if (slash < 0 || providerModel === '' || !Object.hasOwn(providerKinds, provider)) return undefined;
  return { provider: provider as ProviderName, providerModel };
}

/** Returns the offer of a model of which only the name is known. */
export function namedOffer(provider: ProviderName, providerModel: string): Offer {
  // It is unknown whether such a model accepts images: the agent may try, and the provider refuses.
  const visionSupported = provider !== 'local';
  const id = `${provider}/${providerModel}`;
  return { id, provider, providerModel, displayName: providerModel, visionSupported, prices: [], aliases: [] };
}

/** Returns the models of RUNYARD_MODELS that the catalogue does not have, and a sentence for each malformed id. */
export function readExtraModels(ids: readonly string[]): { readonly extra: Offer[]; readonly problems: string[] } {
  const extra: Offer[] = [];
  const problems: string[] = [];
  for (const id of ids) {
    const parts = splitModelId(id);
    if (parts === undefined) {
      problems.push(`RUNYARD_MODELS: ${JSON.stringify(id)} must begin with anthropic/, openai/, google/ or local/`);
    } else if (!fromCatalogue.some((offer) => offer.id === id)) {
      extra.push(namedOffer(parts.provider, parts.providerModel));
    }
  }
  return { extra, problems };
}

/** Returns the catalogue, `extra` and the models that the endpoint on this machine lists, each id once. */
export function listOffers(extra: readonly Offer[], local: LocalModels | undefined): Offer[] {
  const known = new Map<string, Offer>();
  for (const offer of [...fromCatalogue, ...extra]) known.set(offer.id, offer);
  for (const id of local?.ok === true ? local.ids : []) {
    if (!known.has(`local/${id}`)) known.set(`local/${id}`, namedOffer('local', id));
  }
  return [...known.values()];
}

/**
 * Finds a model by its id, the provider's own name or an alias; a name that two providers have means the usable one. Before the endpoint
 * on this machine has listed its models (`localIsListed` false), each name after `local/` is accepted.
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
  const parts = splitModelId(wanted);
  return parts?.provider === 'local' && !localIsListed ? namedOffer('local', parts.providerModel) : undefined;
}
