import type { AgentModel } from '@runyard/contract/agent/agent-protocol';
import type { ListModelsResponse, Model } from '@runyard/contract/team/models';
import { type ModelChoices, noChoices, outageOf } from './choices.ts';
import { closest } from './closest.ts';
import { describeOffer, disabledMessage, disableReason } from './describe-offer.ts';
import { followLocalList, type LocalListOptions } from './local-list.ts';
import { fetchLocalModels, firstLocalId, type LocalModels, noListMessage, unlistedModel } from './local-models.ts';
import { findOffer, listOffers, namedOffer, type Offer, offersOf, readExtraModels, splitModelId } from './offers.ts';
import { readKnownModels } from './operator-models.ts';
import { type Price, priceAt } from './price.ts';
import { isWithoutStreamOptions, type Probe, startableProbe } from './probe-endpoint.ts';
import { combineAccess, type ProviderAccess } from './provider-access.ts';
import {
  type ModelSettings,
  type ProviderKind,
  type ProviderName,
  type Providers,
  providerKinds,
  type Upstream,
} from './providers.ts';
import { isPublicName } from './public-names.ts';
import type { ModelResolution, TaskModelResolution } from './resolution.ts';

/** The built-in model that needs no provider: it runs the `sh` blocks of the prompt. */
const runbookId = 'runbook';

/** The server that gets the requests of a model. */
export interface ModelTarget {
  readonly id: string;
  readonly provider: ProviderName;
  readonly providerModel: string;
  readonly upstream: Upstream;
  /** Absent: not known. */
  readonly price: Price | undefined;
  /** True if a probe has shown that the model's endpoint refuses stream_options. */
  readonly refusesStreamOptions?: boolean;
}

export interface Models {
  /** The list for a team. */
  list(choices?: ModelChoices): ListModelsResponse;
  /** Returns the model of a run; `undefined`, an empty text and `auto` mean the default. */
  resolve(modelId: string | undefined, choices?: ModelChoices): ModelResolution;
  /** Returns the model of a run that begins. For `local/auto`, this function asks the endpoint for its models, and waits at most 10 s. */
  resolveForTask(modelId: string, choices?: ModelChoices): Promise<TaskModelResolution>;
  /** Returns true if a run that asks for this model gets `runbook` only because no model is configured. */
  fallsBackToRunbook(modelId: string | undefined): boolean;
  /**
   * Returns the server to which the gateway sends requests for the model; undefined if the model needs no provider, or if its provider is
   * not configured any more.
   */
  target(modelId: string): ModelTarget | undefined;
  /** The configured providers, so that a loop can probe whether they work. */
  readonly upstreams: Providers;
  readonly sourceOf: ProviderAccess['sourceOf'];
}

export type OpenModelsResult = { ok: true; models: Models } | { ok: false; problems: string[] };

export interface OpenModelsOptions extends Partial<LocalListOptions> {
  /** Probes once which features the default model of the endpoint on this machine has. If absent, nothing is probed. */
  readonly probe?: Probe;
  /** Returns the providers to which people have stored the access. If absent, only the settings give access. */
  readonly stored?: () => Providers;
}

const noProviders: Providers = {};

/** Returns a text that says why no model of the provider can be chosen, and which setting changes that. */
const notUsable = ({ neededSetting, keySetting }: ProviderKind): string =>
  `no ${neededSetting === keySetting ? 'key' : 'endpoint'} set; set ${neededSetting} on the service, or let its owner enter it in the dashboard`;

/**
 * Creates the models for `settings`. Waits at most 3 s for the local endpoint. If the endpoint does not answer, the service starts
 * without the endpoint's models and asks again later. Each problem contains the setting and the reason.
 */
export async function openModels(settings: ModelSettings, options: OpenModelsOptions = {}): Promise<OpenModelsResult> {
  const { log, now = () => new Date(), fetchLocal = fetchLocalModels, probe, stored } = options;
  const { upstreams, sourceOf } = combineAccess(settings, stored ?? (() => noProviders));
  const endpointProbe = startableProbe(log);
  const read = await readKnownModels(settings.RUNYARD_MODELS_FILE);
  if (!read.ok) return read;
  const known = offersOf(read.models);
  const { extra, problems } = readExtraModels(settings.RUNYARD_MODELS, known);
  const followed = followLocalList(() => upstreams().local, { log, now, fetchLocal });
  await followed.start();

  let offered: { readonly of: LocalModels | undefined; readonly offers: readonly Offer[] } | undefined;
  /**
   * Returns the known models. Every creation of a run needs them, so they are computed again only after the list of the local endpoint has
   * changed.
   */
  const offers = (): readonly Offer[] => {
    const of = followed.list()?.current();
    if (!offered || offered.of !== of) offered = { of, offers: listOffers([...known, ...extra], of) };
    return offered.offers;
  };
  const firstLocal = (): Offer | undefined => offers().find(({ provider }) => provider === 'local');
  const usable = (offer: Offer): boolean => upstreams()[offer.provider] !== undefined;

  const find = (wanted: string): Offer | undefined =>
    findOffer(offers(), wanted, { isUsable: usable, localIsListed: followed.list()?.current()?.ok === true });

  const resolveNamed = (wanted: string): ModelResolution => {
    if (wanted === runbookId) return { ok: true, model: { id: runbookId } };
    if (wanted === firstLocalId && upstreams().local !== undefined && firstLocal() === undefined)
      return { ok: true, model: { id: firstLocalId } };
    const offer = wanted === firstLocalId ? (firstLocal() ?? find(wanted)) : find(wanted);
    if (offer === undefined) {
      const suggestions = closest(
        wanted,
        [
          ...offers()
            .filter(usable)
            .map(({ id }) => id),
          runbookId,
        ],
        3,
      );
      const hint =
        suggestions.length > 0
          ? `; did you mean ${suggestions.join(', ')}?`
          : '; GET /agent/models lists the known ones';
      return {
        ok: false,
        reason: 'unknown',
        message: `unknown model ${JSON.stringify(wanted.slice(0, 200))}${hint}`,
        suggestions,
        isLacking: isPublicName(offers(), wanted),
      };
    }
    const kind = providerKinds[offer.provider];
    if (!usable(offer)) {
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
  };

  const chosen = settings.RUNYARD_DEFAULT_MODEL;
  if (chosen === 'auto') problems.push('RUNYARD_DEFAULT_MODEL: must name a model; "auto" means this setting itself');
  else if (chosen !== undefined && problems.length === 0) {
    const resolved = resolveNamed(chosen);
    // The access can be stored while the service runs, so the service starts without it.
    if (!resolved.ok && resolved.reason === 'not_configured' && stored)
      log?.warn({ reason: resolved.message }, 'RUNYARD_DEFAULT_MODEL cannot be used');
    else if (!resolved.ok) problems.push(`RUNYARD_DEFAULT_MODEL: ${resolved.message}`);
  }
  if (problems.length > 0) return { ok: false, problems };

  const defaultOfService = (): string => {
    if (chosen !== undefined) {
      const resolved = resolveNamed(chosen);
      return resolved.ok ? resolved.model.id : chosen;
    }
    return offers().find(usable)?.id ?? (upstreams().local === undefined ? runbookId : firstLocalId);
  };
  /**
   * Use the team's own default model while it can be used. If the default is disabled, the first model that is not disabled replaces it.
   */
  const defaultId = ({ defaultId: wanted, disabledIds }: ModelChoices = noChoices): string => {
    if (wanted !== null && !disabledIds.includes(wanted) && resolveNamed(wanted).ok) return wanted;
    const ofService = defaultOfService();
    if (!disabledIds.includes(ofService)) return ofService;
    return offers().find((offer) => usable(offer) && !disabledIds.includes(offer.id))?.id ?? ofService;
  };
  const isDefault = (modelId: string | undefined): boolean =>
    modelId === undefined || modelId.trim() === '' || modelId.trim() === 'auto';

  const assumed = settings.RUNYARD_UNKNOWN_MODEL_PRICE;
  const assumedPrice = assumed && { ...assumed, cacheRead: assumed.input, cacheWrite: assumed.input };
  const priceOf = (offer: Offer): Price | undefined => priceAt(offer.prices, now()) ?? assumedPrice;

  const listed = (offer: Offer, choices: ModelChoices): Model => {
    const price = priceOf(offer);
    const reason = usable(offer) ? disableReason(choices, offer.id, offer.provider) : undefined;
    const description = describeOffer(offer, reason, endpointProbe.abilities.get(offer.id));
    return {
      id: offer.id,
      display_name: offer.displayName,
      provider: providerKinds[offer.provider].contractName,
      vision_supported: offer.visionSupported,
      ...(price && { cost: { input_usd_per_mtok: price.input, output_usd_per_mtok: price.output } }),
      ...(usable(offer)
        ? { ...(description && { description }), ...(reason && { disable_reason: reason }) }
        : { description: notUsable(providerKinds[offer.provider]), disable_reason: 'ADMIN_DISABLED' as const }),
    };
  };

  const resolve = (modelId: string | undefined, choices: ModelChoices): ModelResolution => {
    const wanted = modelId === undefined || isDefault(modelId) ? defaultId(choices) : modelId.trim();
    const resolved = resolveNamed(wanted);
    if (!resolved.ok) return resolved;
    const { model } = resolved;
    if (choices.disabledIds.includes(model.id))
      return { ok: false, reason: 'disabled', message: disabledMessage(model.id) };
    const outage = outageOf(choices, splitModelId(model.id)?.provider);
    if (!outage) return resolved;
    return {
      ok: false,
      reason: 'outage',
      message: `the provider of ${model.id} has an outage; it is tried again in ${outage.probeInSeconds} s. Try again later, or name another model or config.model_fallbacks`,
      model,
      retryAfterSeconds: outage.probeInSeconds,
    };
  };

  /** Probes the endpoint's default model, or else its first model, as soon as its models are known. */
  const probeOnce = (): void => {
    const { local } = upstreams();
    const offer = offers().find(({ id }) => id === defaultOfService());
    const tried = offer?.provider === 'local' ? offer : firstLocal();
    if (probe && local && tried) endpointProbe.begin(local, tried, probe);
  };
  probeOnce();

  const models: Models = {
    list: (choices = noChoices) => {
      probeOnce();
      followed.list()?.refresh();
      const runbook: Model = {
        id: runbookId,
        display_name: 'Runbook',
        provider: 'UNKNOWN',
        vision_supported: false,
        description: choices.disabledIds.includes(runbookId)
          ? 'An administrator of the team disabled it.'
          : 'No language model: runs the fenced sh blocks of the prompt one by one.',
        ...(choices.disabledIds.includes(runbookId) && { disable_reason: 'ADMIN_DISABLED' as const }),
      };
      const current = offers();
      const { local } = upstreams();
      const unlisted = local && firstLocal() === undefined ? [unlistedModel(local, followed.list()?.current())] : [];
      const list = (some: readonly Offer[]) => some.map((offer) => listed(offer, choices));
      return {
        default_model_id: defaultId(choices),
        models: [
          ...list(current.filter(usable)),
          ...unlisted,
          runbook,
          ...list(current.filter((offer) => !usable(offer))),
        ],
      };
    },
    resolve: (modelId, choices = noChoices) => {
      followed.list()?.refresh();
      return resolve(modelId, choices);
    },
    resolveForTask: async (modelId, choices = noChoices) => {
      const { local } = upstreams();
      if (modelId !== firstLocalId || local === undefined) return models.resolve(modelId, choices);
      if (firstLocal() === undefined) await followed.list()?.ask();
      if (firstLocal() !== undefined) return resolve(firstLocalId, choices);
      return { ok: false, reason: 'unreachable', message: noListMessage(local, followed.list()?.current()) };
    },
    fallsBackToRunbook: (modelId) => chosen === undefined && isDefault(modelId) && defaultOfService() === runbookId,
    target: (modelId) => {
      const parts = splitModelId(modelId);
      // A run keeps its model even if the catalogue or the endpoint does not have the model any more.
      const offer =
        offers().find((each) => each.id === modelId) ?? (parts && namedOffer(parts.provider, parts.providerModel));
      const upstream = offer && upstreams()[offer.provider];
      if (offer === undefined || upstream === undefined) return undefined;
      const { id, provider, providerModel } = offer;
      const refusesStreamOptions =
        provider === 'local' && [...endpointProbe.abilities.values()].some(isWithoutStreamOptions);
      return {
        id,
        provider,
        providerModel,
        upstream,
        price: priceOf(offer),
        ...(refusesStreamOptions && { refusesStreamOptions }),
      };
    },
    get upstreams() {
      return upstreams();
    },
    sourceOf,
  };
  return { ok: true, models };
}
