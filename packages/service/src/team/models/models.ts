import type { ListModelsResponse, Model } from '@runyard/contract/team/models';
import { type ModelChoices, noChoices, outageOf } from './choices.ts';
import { describeOffer, disabledMessage, disableReason } from './describe-offer.ts';
import { type KnownModels, makeKnownModels, notUsable, runbookId } from './known-models.ts';
import { followLocalList, type LocalList, type LocalListOptions } from './local-list.ts';
import { fetchLocalModels, firstLocalId, noListMessage, unlistedModel } from './local-models.ts';
import { namedOffer, type Offer, offersOf, readExtraModels, splitModelId } from './offers.ts';
import { readKnownModels } from './operator-models.ts';
import { type Price, priceAt } from './price.ts';
import { type Abilities, isWithoutStreamOptions, type Probe, startableProbe } from './probe-endpoint.ts';
import { combineAccess, type ProviderAccess } from './provider-access.ts';
import { type ModelSettings, type ProviderName, type Providers, providerKinds, type Upstream } from './providers.ts';
import type { ModelResolution, TaskModelResolution } from './resolution.ts';

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

/**
 * Creates the models for `settings`. Waits at most 3 s for the local endpoint. If the endpoint does not answer, the service starts
 * without the endpoint's models and asks again later. Each problem contains the setting and the reason.
 */
export async function openModels(settings: ModelSettings, options: OpenModelsOptions = {}): Promise<OpenModelsResult> {
  const { log, now = () => new Date(), fetchLocal = fetchLocalModels, stored } = options;
  const { upstreams, sourceOf } = combineAccess(settings, stored ?? (() => noProviders));
  const read = await readKnownModels(settings.RUNYARD_MODELS_FILE);
  if (!read.ok) return read;
  const known = offersOf(read.models);
  const { extra, problems } = readExtraModels(settings.RUNYARD_MODELS, known);
  const followed = followLocalList(() => upstreams().local, { log, now, fetchLocal });
  await followed.start();
  const knownModels = makeKnownModels({ known: [...known, ...extra], localList: followed.list, upstreams });
  const chosen = settings.RUNYARD_DEFAULT_MODEL;
  const problem =
    problems.length === 0 || chosen === 'auto' ? problemOfDefault(chosen, knownModels, options) : undefined;
  if (problem !== undefined) problems.push(problem);
  if (problems.length > 0) return { ok: false, problems };
  const assumed = settings.RUNYARD_UNKNOWN_MODEL_PRICE;
  const assumedPrice = assumed && { ...assumed, cacheRead: assumed.input, cacheWrite: assumed.input };
  const models = makeModels({
    knownModels,
    localList: followed.list,
    upstreams,
    sourceOf,
    chosen,
    priceOf: (offer) => priceAt(offer.prices, now()) ?? assumedPrice,
    probe: options.probe,
    log,
  });
  return { ok: true, models };
}

/** Returns a problem of the setting RUNYARD_DEFAULT_MODEL; undefined if the service can start. */
function problemOfDefault(
  chosen: string | undefined,
  knownModels: KnownModels,
  { log, stored }: OpenModelsOptions,
): string | undefined {
  if (chosen === 'auto') return 'RUNYARD_DEFAULT_MODEL: must name a model; "auto" means this setting itself';
  const resolved = chosen === undefined ? undefined : knownModels.resolveNamed(chosen);
  if (resolved === undefined || resolved.ok) return undefined;
  // The access can be stored while the service runs, so the service starts without it.
  if (resolved.reason !== 'not_configured' || !stored) return `RUNYARD_DEFAULT_MODEL: ${resolved.message}`;
  log?.warn({ reason: resolved.message }, 'RUNYARD_DEFAULT_MODEL cannot be used');
  return undefined;
}

interface ModelsParts {
  readonly knownModels: KnownModels;
  readonly localList: () => LocalList | undefined;
  readonly upstreams: () => Providers;
  readonly sourceOf: ProviderAccess['sourceOf'];
  /** The default model of the settings. */
  readonly chosen: string | undefined;
  readonly priceOf: (offer: Offer) => Price | undefined;
  readonly probe: Probe | undefined;
  readonly log: OpenModelsOptions['log'];
}

const isDefault = (modelId: string | undefined): boolean =>
  modelId === undefined || modelId.trim() === '' || modelId.trim() === 'auto';

/** Returns the functions that choose the default model. */
function makeDefaults({ knownModels, upstreams, chosen }: ModelsParts) {
  const { offers, isUsable, resolveNamed } = knownModels;
  const ofService = (): string => {
    if (chosen !== undefined) {
      const resolved = resolveNamed(chosen);
      return resolved.ok ? resolved.model.id : chosen;
    }
    return offers().find(isUsable)?.id ?? (upstreams().local === undefined ? runbookId : firstLocalId);
  };
  /** Use the team's own default model while it can be used. If the default is disabled, the first model that is not disabled replaces it. */
  const ofTeam = ({ defaultId: wanted, disabledIds }: ModelChoices): string => {
    if (wanted !== null && !disabledIds.includes(wanted) && resolveNamed(wanted).ok) return wanted;
    const id = ofService();
    if (!disabledIds.includes(id)) return id;
    return offers().find((offer) => isUsable(offer) && !disabledIds.includes(offer.id))?.id ?? id;
  };
  return { ofService, ofTeam };
}

/** Returns a function that returns the list of models for a team. */
function makeList(
  { knownModels, localList, upstreams, priceOf }: ModelsParts,
  abilitiesOf: (modelId: string) => Abilities | undefined,
): (choices: ModelChoices) => Model[] {
  const { offers, isUsable, firstLocal } = knownModels;
  const listed = (offer: Offer, choices: ModelChoices): Model => {
    const price = priceOf(offer);
    const reason = isUsable(offer) ? disableReason(choices, offer.id, offer.provider) : undefined;
    const description = describeOffer(offer, reason, abilitiesOf(offer.id));
    return {
      id: offer.id,
      display_name: offer.displayName,
      provider: providerKinds[offer.provider].contractName,
      vision_supported: offer.visionSupported,
      ...(price && { cost: { input_usd_per_mtok: price.input, output_usd_per_mtok: price.output } }),
      ...(isUsable(offer)
        ? { ...(description && { description }), ...(reason && { disable_reason: reason }) }
        : { description: notUsable(providerKinds[offer.provider]), disable_reason: 'ADMIN_DISABLED' as const }),
    };
  };
  const runbook = (isDisabled: boolean): Model => ({
    id: runbookId,
    display_name: 'Runbook',
    provider: 'UNKNOWN',
    vision_supported: false,
    description: isDisabled
      ? 'An administrator of the team disabled it.'
      : 'No language model: runs the fenced sh blocks of the prompt one by one.',
    ...(isDisabled && { disable_reason: 'ADMIN_DISABLED' as const }),
  });
  return (choices) => {
    const current = offers();
    const { local } = upstreams();
    const unlisted = local && firstLocal() === undefined ? [unlistedModel(local, localList()?.current())] : [];
    const list = (some: readonly Offer[]) => some.map((offer) => listed(offer, choices));
    return [
      ...list(current.filter(isUsable)),
      ...unlisted,
      runbook(choices.disabledIds.includes(runbookId)),
      ...list(current.filter((offer) => !isUsable(offer))),
    ];
  };
}

function makeModels(parts: ModelsParts): Models {
  const { knownModels, localList, upstreams, sourceOf, chosen, priceOf, probe } = parts;
  const { offers, firstLocal, resolveNamed } = knownModels;
  const endpointProbe = startableProbe(parts.log);
  const defaults = makeDefaults(parts);
  const list = makeList(parts, (modelId) => endpointProbe.abilities.get(modelId));

  const resolve = (modelId: string | undefined, choices: ModelChoices): ModelResolution => {
    const wanted = modelId === undefined || isDefault(modelId) ? defaults.ofTeam(choices) : modelId.trim();
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
    const offer = offers().find(({ id }) => id === defaults.ofService());
    const tried = offer?.provider === 'local' ? offer : firstLocal();
    if (probe && local && tried) endpointProbe.begin(local, tried, probe);
  };
  probeOnce();

  const models: Models = {
    list: (choices = noChoices) => {
      probeOnce();
      localList()?.refresh();
      return { default_model_id: defaults.ofTeam(choices), models: list(choices) };
    },
    resolve: (modelId, choices = noChoices) => {
      localList()?.refresh();
      return resolve(modelId, choices);
    },
    resolveForTask: async (modelId, choices = noChoices) => {
      const { local } = upstreams();
      if (modelId !== firstLocalId || local === undefined) return models.resolve(modelId, choices);
      if (firstLocal() === undefined) await localList()?.ask();
      if (firstLocal() !== undefined) return resolve(firstLocalId, choices);
      return { ok: false, reason: 'unreachable', message: noListMessage(local, localList()?.current()) };
    },
    fallsBackToRunbook: (modelId) => chosen === undefined && isDefault(modelId) && defaults.ofService() === runbookId,
    target: (modelId) => {
      const named = splitModelId(modelId);
      // A run keeps its model even if the catalogue or the endpoint does not have the model any more.
      const offer =
        offers().find((each) => each.id === modelId) ?? (named && namedOffer(named.provider, named.providerModel));
      const upstream = offer && upstreams()[offer.provider];
      if (offer === undefined || upstream === undefined) return undefined;
      const { id, provider, providerModel } = offer;
      const refusesStreamOptions =
        provider === 'local' && [...endpointProbe.abilities.values()].some(isWithoutStreamOptions);
      const target = { id, provider, providerModel, upstream, price: priceOf(offer) };
      return { ...target, ...(refusesStreamOptions && { refusesStreamOptions }) };
    },
    get upstreams() {
      return upstreams();
    },
    sourceOf,
  };
  return models;
}
