/**
 * Reads the catalogue of well-known models with their prices. The prices are an estimate at the standard rate, without batch, flex,
 * priority or regional tariffs. `catalogue.json` has the data. Sources of the model names: the catalogues of the pinned @ai-sdk/anthropic,
 * @ai-sdk/openai and @ai-sdk/google. Source of the prices: platform.claude.com/docs/en/about-claude/pricing,
 * developers.openai.com/api/docs/pricing and ai.google.dev/gemini-api/docs/pricing, partly as other sites quote them. Source of the context
 * windows and reasoning levels: the model map of LiteLLM 1.109.1. If no page has a price, the model has no price, or a price that follows
 * from the usual price ratios of its model family. docs/models.md describes how to renew the data.
 */
import { readFileSync } from 'node:fs';
import { z } from 'zod';
import type { Price } from './price.ts';
import { type ProviderName, providerKinds } from './providers.ts';

const rate = z.number().min(0).max(100_000);
const Rates = z.strictObject({
  input: rate,
  output: rate,
  cache_read: rate.optional(),
  cache_write: rate.optional(),
  cache_write_long: rate.optional(),
});
const day = z.iso.date();
const PriceEntry = Rates.extend({
  from: day.optional(),
  long_prompt: Rates.extend({ above: z.int().min(1) }).optional(),
});

/** A model in a catalogue file. The id is `provider/name`, with the name that the provider uses for the model. */
const ModelEntry = z.strictObject({
  id: z.string().regex(new RegExp(`^(${Object.keys(providerKinds).join('|')})/[\\x21-\\x7e]{1,200}$`), {
    error: 'must begin with anthropic/, openai/, google/ or local/ and continue with printable characters',
  }),
  name: z.string().trim().min(1).max(100),
  aliases: z
    .array(z.string().regex(/^[\x21-\x7e]{1,200}$/))
    .max(20)
    .default([]),
  vision: z.boolean(),
  context_window: z.int().min(1).optional(),
  reasoning_levels: z.array(z.string().min(1).max(50)).max(20).optional(),
  prices: z
    .array(PriceEntry)
    .max(20)
    .refine((prices) => prices.every(({ from }, at) => at === 0 || (from ?? '') > (prices[at - 1]?.from ?? '')), {
      error: 'must be in the order of their first days',
    })
    .default([]),
});

const CatalogueFile = z.strictObject({ made_on: day, models: z.array(ModelEntry).max(5_000) });

/** A file of an operator. An entry for a known model needs only the members that differ from the catalogue. */
export const OperatorCatalogueFile = z.strictObject({
  made_on: day.optional(),
  models: z.array(ModelEntry.partial().required({ id: true })).max(5_000),
});

export interface CatalogueModel {
  readonly provider: ProviderName;
  /** Name of the model that the provider uses. */
  readonly providerModel: string;
  readonly displayName: string;
  readonly visionSupported: boolean;
  /** Size of the context window in tokens; absent if it is not known. */
  readonly contextWindow?: number;
  readonly reasoningLevels?: readonly string[];
  /** The prices, sorted by the first day of each; an empty list if no price is known. */
  readonly prices: readonly Price[];
  /** Other names that the provider uses for the same model. */
  readonly aliases: readonly string[];
}

function toRates(rates: z.output<typeof Rates>) {
  const { input, output, cache_read: cacheRead, cache_write: cacheWrite, cache_write_long: cacheWriteLong } = rates;
  return {
    input,
    output,
    ...(cacheRead === undefined ? {} : { cacheRead }),
    ...(cacheWrite === undefined ? {} : { cacheWrite }),
    ...(cacheWriteLong === undefined ? {} : { cacheWriteLong }),
  };
}

const toPrice = ({ from, long_prompt, ...rates }: z.output<typeof PriceEntry>): Price => ({
  ...(from === undefined ? {} : { from }),
  ...toRates(rates),
  ...(long_prompt === undefined ? {} : { longPrompt: { above: long_prompt.above, ...toRates(long_prompt) } }),
});

/** Returns a known model with the members of `entry`, or a new model. */
export function withEntry(
  known: CatalogueModel | undefined,
  entry: z.output<typeof OperatorCatalogueFile>['models'][number],
): CatalogueModel {
  const slash = entry.id.indexOf('/');
  const providerModel = entry.id.slice(slash + 1);
  const contextWindow = entry.context_window ?? known?.contextWindow;
  const reasoningLevels = entry.reasoning_levels ?? known?.reasoningLevels;
  return Object.freeze({
    provider: entry.id.slice(0, slash) as ProviderName,
    providerModel,
    displayName: entry.name ?? known?.displayName ?? providerModel,
    visionSupported: entry.vision ?? known?.visionSupported ?? false,
    ...(contextWindow === undefined ? {} : { contextWindow }),
    ...(reasoningLevels === undefined ? {} : { reasoningLevels }),
    prices: entry.prices?.map(toPrice) ?? known?.prices ?? [],
    aliases: entry.aliases ?? known?.aliases ?? [],
  });
}

const file = CatalogueFile.parse(JSON.parse(readFileSync(new URL('./catalogue.json', import.meta.url), 'utf8')));

/**
 * The models in the order of the catalogue. The first model of each provider is the provider's default: the best balance of quality and
 * price.
 */
export const catalogue: readonly CatalogueModel[] = Object.freeze(
  file.models.map((entry) => withEntry(undefined, entry)),
);

/** Day on which the names and prices were collected, `YYYY-MM-DD`. */
export const catalogueMadeOn = file.made_on;

/** Number of days after which the names and prices have probably changed. */
const staleAfterDays = 90;

/** Returns the age of a catalogue in days if it is old; null if it is not old. */
export function ageIfOld(madeOn: string, now: Date): number | null {
  const days = Math.floor((now.getTime() - Date.parse(madeOn)) / 86_400_000);
  return days > staleAfterDays ? days : null;
}
