import type { AgentModel } from '@runyard/contract/agent-protocol';
import type { ListModelsResponse, Model } from '@runyard/contract/models';
import { catalogue } from './catalogue.ts';
import { closest } from './closest.ts';
import { firstLocalId, noListMessage, unlistedModel } from './first-local.ts';
import { fetchLocalModels, type LocalModels } from './local-models.ts';
import { type Price, priceAt } from './price.ts';
import {
  type ModelSettings,
  type ProviderKind,
  type ProviderName,
  providerKinds,
  type Upstream,
  upstreamsOf,
} from './providers.ts';

/** The built-in model that needs no provider: it runs the `sh` blocks of the prompt. */
const runbookId = 'runbook';

/** A model that runs can be created with. `agentModel` is what `AgentTask.harness.model` holds; absent for `runbook`. */
export interface ResolvedModel {
  readonly id: string;
  readonly agentModel?: AgentModel;
}

/** `message` is a sentence for the caller that says what to do; the answer is 400 `invalid_request`. */
export type ModelResolution =
  | { readonly ok: true; readonly model: ResolvedModel }
  | {
      readonly ok: false;
      readonly reason: 'unknown' | 'not_configured';
      readonly message: string;
      readonly suggestions: string[];
    };

/** `unreachable`: the run's model is not known, because its endpoint lists none; the run ends with `resource_unavailable`. */
export type TaskModelResolution =
  | ModelResolution
  | { readonly ok: false; readonly reason: 'unreachable'; readonly message: string };

/** Where the gateway sends the requests of a model. */
export interface ModelTarget {
  readonly id: string;
  readonly provider: ProviderName;
  readonly providerModel: string;
  readonly upstream: Upstream;
  /** Absent: not known. */
  readonly price: Price | undefined;
}

export interface Models {
  list(): ListModelsResponse;
  /** The model of a run; `undefined`, an empty text and `auto` give the default. */
  resolve(modelId: string | undefined): ModelResolution;
  /** The model of a run that begins. Asks the endpoint of `local/auto` for its models, for at most 10 s. */
  resolveForTask(modelId: string): Promise<TaskModelResolution>;
  /** True: a run that asks for this model gets `runbook` only because no model is configured. */
  fallsBackToRunbook(modelId: string | undefined): boolean;
  /** For the gateway; undefined where the model needs no provider or its provider is not configured (any more). */
  target(modelId: string): ModelTarget | undefined;
}

export type OpenModelsResult = { ok: true; models: Models } | { ok: false; problems: string[] };

interface ModelsLog {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
}

export interface OpenModelsOptions {
  readonly log?: ModelsLog;
  readonly now?: () => Date;
  readonly fetchLocal?: (upstream: Upstream, timeoutMs: number) => Promise<LocalModels>;
}

interface Offer {
  readonly id: string;
  readonly provider: ProviderName;
  readonly providerModel: string;
  readonly displayName: string;
  readonly visionSupported: boolean;
  readonly prices: readonly Price[];
  readonly aliases: readonly string[];
}

/** A list from the local endpoint is as good as new for so long; after a failure it is asked again sooner. */
const freshMs = 60_000;
const retryMs = 10_000;
/** The service starts with or without the list; a run that needs it waits longer. */
const startTimeoutMs = 3_000;
const taskTimeoutMs = 10_000;

const fromCatalogue: readonly Offer[] = catalogue.map((model) => ({
  ...model,
  id: `${model.provider}/${model.providerModel}`,
  aliases: model.aliases ?? [],
}));

function split(id: string): { provider: ProviderName; providerModel: string } | undefined {
  const slash = id.indexOf('/');
  const provider = id.slice(0, slash);
  const providerModel = id.slice(slash + 1);
  if (slash < 0 || providerModel === '' || !Object.hasOwn(providerKinds, provider)) return undefined;
  return { provider: provider as ProviderName, providerModel };
}

/** Says why no model of the provider can be chosen, and which setting changes that. */
const notUsable = ({ neededSetting, keySetting }: ProviderKind): string =>
  neededSetting === keySetting ? `no key set; set ${neededSetting}` : `no endpoint set; set ${neededSetting}`;

/** A model that only its name is known of. */
function plain(provider: ProviderName, providerModel: string): Offer {
  // It is unknown whether such a model accepts images: the agent may try, and the provider refuses.
  const visionSupported = provider !== 'local';
  const id = `${provider}/${providerModel}`;
  return { id, provider, providerModel, displayName: providerModel, visionSupported, prices: [], aliases: [] };
}

/**
 * Opens the catalogue for `settings`. Waits for the local endpoint at most 3 s; if it is down, the service starts without it and
 * asks again later. Problems name the setting and the reason.
 */
export async function openModels(settings: ModelSettings, options: OpenModelsOptions = {}): Promise<OpenModelsResult> {
  const { log, now = () => new Date(), fetchLocal = fetchLocalModels } = options;
  const upstreams = upstreamsOf(settings);
  const problems: string[] = [];
  const extra: Offer[] = [];
  for (const id of settings.RUNYARD_MODELS) {
    const parts = split(id);
    if (parts === undefined) {
      problems.push(`RUNYARD_MODELS: ${JSON.stringify(id)} must begin with anthropic/, openai/, google/ or local/`);
    } else if (!fromCatalogue.some((offer) => offer.id === id)) {
      extra.push(plain(parts.provider, parts.providerModel));
    }
  }

  let local: LocalModels | undefined;
  let askedAt = 0;
  let asking: Promise<void> | undefined;
  const askLocal = async (upstream: Upstream, timeoutMs: number): Promise<void> => {
    const before = local?.ok;
    const answer = await fetchLocal(upstream, timeoutMs);
    askedAt = now().getTime();
    // The last good list stays in use while the endpoint is down: runs then fail with the error of the endpoint, which says more.
    if (answer.ok || local?.ok !== true) local = answer;
    if (!answer.ok && before !== false)
      log?.warn({ reason: answer.reason }, 'RUNYARD_MODEL_BASE_URL does not list its models');
    if (answer.ok && before !== true)
      log?.info({ models: answer.ids.length }, 'RUNYARD_MODEL_BASE_URL lists its models');
  };
  const askOnce = (upstream: Upstream): Promise<void> => {
    asking ??= askLocal(upstream, taskTimeoutMs).finally(() => {
      asking = undefined;
    });
    return asking;
  };
  const refresh = (): void => {
    if (upstreams.local === undefined) return;
    if (now().getTime() - askedAt < (local?.ok ? freshMs : retryMs)) return;
    void askOnce(upstreams.local);
  };

  let offered: { readonly of: LocalModels | undefined; readonly offers: readonly Offer[] } | undefined;
  /** Each create asks: made anew only where the local endpoint's list is another. */
  const offers = (): readonly Offer[] => {
    if (!offered || offered.of !== local) offered = { of: local, offers: listOffers() };
    return offered.offers;
  };
  const listOffers = (): Offer[] => {
    const known = new Map<string, Offer>();
    for (const offer of [...fromCatalogue, ...extra]) known.set(offer.id, offer);
    for (const id of local?.ok === true ? local.ids : []) {
      if (!known.has(`local/${id}`)) known.set(`local/${id}`, plain('local', id));
    }
    return [...known.values()];
  };
  const firstLocal = (): Offer | undefined => offers().find(({ provider }) => provider === 'local');
  const usable = (offer: Offer): boolean => upstreams[offer.provider] !== undefined;

  const find = (wanted: string): Offer | undefined => {
    const all = offers();
    const exact = all.find((offer) => offer.id === wanted);
    if (exact !== undefined) return exact;
    const named = all.filter((offer) =>
      [offer.providerModel, ...offer.aliases].some((name) => name === wanted || `${offer.provider}/${name}` === wanted),
    );
    // If two providers have a model of this name, the usable one is meant.
    const candidates = named.length > 1 ? named.filter(usable) : named;
    if (candidates.length === 1) return candidates[0];
    // Until the endpoint has listed its models, any name may be valid.
    const parts = split(wanted);
    return parts?.provider === 'local' && local?.ok !== true ? plain('local', parts.providerModel) : undefined;
  };

  const resolveNamed = (wanted: string): ModelResolution => {
    if (wanted === runbookId) return { ok: true, model: { id: runbookId } };
    if (wanted === firstLocalId && upstreams.local !== undefined && firstLocal() === undefined)
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
      };
    }
    const kind = providerKinds[offer.provider];
    if (!usable(offer)) {
      const message = `model ${offer.id}: ${notUsable(kind)} on the service`;
      return { ok: false, reason: 'not_configured', message, suggestions: [] };
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

  if (upstreams.local !== undefined) await askLocal(upstreams.local, startTimeoutMs);
  const chosen = settings.RUNYARD_DEFAULT_MODEL;
  if (chosen === 'auto') problems.push('RUNYARD_DEFAULT_MODEL: must name a model; "auto" means this setting itself');
  else if (chosen !== undefined && problems.length === 0) {
    const resolved = resolveNamed(chosen);
    if (!resolved.ok) problems.push(`RUNYARD_DEFAULT_MODEL: ${resolved.message}`);
  }
  if (problems.length > 0) return { ok: false, problems };

  const defaultId = (): string => {
    if (chosen !== undefined) {
      const resolved = resolveNamed(chosen);
      return resolved.ok ? resolved.model.id : chosen;
    }
    return offers().find(usable)?.id ?? (upstreams.local === undefined ? runbookId : firstLocalId);
  };
  const isDefault = (modelId: string | undefined): boolean =>
    modelId === undefined || modelId.trim() === '' || modelId.trim() === 'auto';

  const assumed = settings.RUNYARD_UNKNOWN_MODEL_PRICE;
  const assumedPrice = assumed && { ...assumed, cacheRead: assumed.input, cacheWrite: assumed.input };
  const priceOf = (offer: Offer): Price | undefined => priceAt(offer.prices, now()) ?? assumedPrice;

  const listed = (offer: Offer): Model => {
    const price = priceOf(offer);
    return {
      id: offer.id,
      display_name: offer.displayName,
      provider: providerKinds[offer.provider].contractName,
      vision_supported: offer.visionSupported,
      ...(price && { cost: { input_usd_per_mtok: price.input, output_usd_per_mtok: price.output } }),
      ...(!usable(offer) && {
        description: notUsable(providerKinds[offer.provider]),
        disable_reason: 'ADMIN_DISABLED' as const,
      }),
    };
  };

  const models: Models = {
    list: () => {
      refresh();
      const runbook: Model = {
        id: runbookId,
        display_name: 'Runbook',
        provider: 'UNKNOWN',
        vision_supported: false,
        description: 'No language model: runs the fenced sh blocks of the prompt one by one.',
      };
      const all = offers();
      const unlisted = upstreams.local && firstLocal() === undefined ? [unlistedModel(upstreams.local, local)] : [];
      const disabled = all.filter((offer) => !usable(offer)).map(listed);
      return {
        default_model_id: defaultId(),
        models: [...all.filter(usable).map(listed), ...unlisted, runbook, ...disabled],
      };
    },
    resolve: (modelId) => {
      refresh();
      return resolveNamed(modelId === undefined || isDefault(modelId) ? defaultId() : modelId.trim());
    },
    resolveForTask: async (modelId) => {
      if (modelId !== firstLocalId || upstreams.local === undefined) return models.resolve(modelId);
      if (firstLocal() === undefined) await askOnce(upstreams.local);
      if (firstLocal() !== undefined) return resolveNamed(firstLocalId);
      return { ok: false, reason: 'unreachable', message: noListMessage(upstreams.local, local) };
    },
    fallsBackToRunbook: (modelId) => chosen === undefined && isDefault(modelId) && defaultId() === runbookId,
    target: (modelId) => {
      const parts = split(modelId);
      // A run keeps its model even if the catalogue or the endpoint no longer has it.
      const offer =
        offers().find((each) => each.id === modelId) ?? (parts && plain(parts.provider, parts.providerModel));
      const upstream = offer && upstreams[offer.provider];
      if (offer === undefined || upstream === undefined) return undefined;
      const { id, provider, providerModel } = offer;
      return { id, provider, providerModel, upstream, price: priceOf(offer) };
    },
  };
  return { ok: true, models };
}
