/**
 * Well-known models and what they cost: an estimate at the standard rate, without batch, flex, priority or regional tariffs.
 * Model names: the catalogues of the pinned @ai-sdk/anthropic, @ai-sdk/openai and @ai-sdk/google. Prices as published on
 * platform.claude.com/docs/en/about-claude/pricing, developers.openai.com/api/docs/pricing and
 * ai.google.dev/gemini-api/docs/pricing, read on 2026-11-21, partly through sites that quote them. No page was found for the
 * cached input of the GPT-5 and GPT-5.4 small models and for the long-prompt tier of GPT-5.4 and 5.5: those follow the family's
 * usual ratios. Every cost is shown as an estimate.
 */
import type { Price } from './price.ts';

export type CatalogueProvider = 'anthropic' | 'openai' | 'google';

export interface CatalogueModel {
  readonly provider: CatalogueProvider;
  /** The provider's own name. */
  readonly providerModel: string;
  readonly displayName: string;
  readonly visionSupported: boolean;
  /** Empty: not known. In the order of their first days. */
  readonly prices: readonly Price[];
  /** Other names of the same model. */
  readonly aliases?: readonly string[];
}

/** Anthropic: a cache write costs 1.25 times the input for 5 minutes and twice for 1 hour; a cache read is listed by model. */
const claude = (input: number, output: number, cacheRead: number): Price => ({
  input,
  output,
  cacheRead,
  cacheWrite: input * 1.25,
  cacheWriteLong: input * 2,
});

/** OpenAI until GPT-5.5: nothing for cache writes, and none are reported. */
const gpt = (input: number, output: number, cacheRead: number): Price => ({ input, output, cacheRead });

/** Prompts above 272,000 tokens: twice the input and the cache, one and a half times the output, for the whole request. */
const gptLong = (input: number, output: number, cacheRead: number): Price => ({
  ...gpt(input, output, cacheRead),
  longPrompt: { above: 272_000, input: input * 2, output: output * 1.5, cacheRead: cacheRead * 2 },
});

/** OpenAI from GPT-5.6 on: cache writes at 1.25 times the input. Twice for 12 hours, listed for GPT-6.1 Terra only. */
const gptCached = (input: number, output: number, cacheRead: number, cacheWriteLong?: number): Price => {
  const long = cacheWriteLong === undefined ? {} : { cacheWriteLong };
  const twice = cacheWriteLong === undefined ? {} : { cacheWriteLong: cacheWriteLong * 2 };
  return {
    ...gpt(input, output, cacheRead),
    cacheWrite: input * 1.25,
    ...long,
    longPrompt: {
      above: 272_000,
      input: input * 2,
      output: output * 1.5,
      cacheRead: cacheRead * 2,
      cacheWrite: input * 2.5,
      ...twice,
    },
  };
};

/** Google: caching is implicit, writing costs nothing; a reduced price until the end of the month or year, then twice. */
const gemini = (input: number, output: number, cacheRead?: number): Price =>
  cacheRead === undefined ? { input, output } : { input, output, cacheRead };
const doubling = (from: string, input: number, output: number, cacheRead: number): readonly Price[] => [
  gemini(input, output, cacheRead),
  { from, ...gemini(input * 2, output * 2, cacheRead * 2) },
];

const of =
  (provider: CatalogueProvider) =>
  (
    providerModel: string,
    displayName: string,
    price: Price | readonly Price[],
    aliases: readonly string[] = [],
  ): CatalogueModel =>
    Object.freeze({
      provider,
      providerModel,
      displayName,
      visionSupported: true,
      prices: Object.freeze(Array.isArray(price) ? [...price] : [price as Price]),
      aliases,
    });
const anthropic = of('anthropic');
const openai = of('openai');
const google = of('google');

/** In the order in which they are listed. The first of a provider is its default: the balance of quality and price. */
export const catalogue: readonly CatalogueModel[] = Object.freeze([
  anthropic('claude-sonnet-5-5', 'Claude Sonnet 5.5', [
    claude(2, 10, 0.2),
    { from: '2026-10-07', ...claude(2, 10, 0.1) },
  ]),
  anthropic('claude-opus-5-5', 'Claude Opus 5.5', claude(4, 20, 0.2)),
  anthropic('claude-fable-5-2', 'Claude Fable 5.2', claude(8, 40, 0.2)),
  anthropic('claude-haiku-5-5', 'Claude Haiku 5.5', {
    ...claude(0.1, 0.5, 0.01),
    longPrompt: { above: 100_000, ...claude(0.5, 2.5, 0.05) },
  }),
  anthropic('claude-sonnet-5', 'Claude Sonnet 5', claude(2, 10, 0.2)),
  anthropic('claude-opus-5', 'Claude Opus 5', claude(5, 25, 0.5)),
  anthropic('claude-fable-5-1', 'Claude Fable 5.1', claude(10, 50, 0.25)),
  anthropic('claude-fable-5', 'Claude Fable 5', claude(10, 50, 1)),
  anthropic('claude-opus-4-8', 'Claude Opus 4.8', claude(5, 25, 0.5)),
  anthropic('claude-opus-4-7', 'Claude Opus 4.7', claude(5, 25, 0.5)),
  anthropic('claude-opus-4-6', 'Claude Opus 4.6', claude(5, 25, 0.5)),
  anthropic('claude-opus-4-5', 'Claude Opus 4.5', claude(5, 25, 0.5), ['claude-opus-4-5-20251101']),
  anthropic('claude-sonnet-4-6', 'Claude Sonnet 4.6', claude(3, 15, 0.3)),
  anthropic('claude-sonnet-4-5', 'Claude Sonnet 4.5', claude(3, 15, 0.3), ['claude-sonnet-4-5-20250929']),
  anthropic('claude-haiku-4-5', 'Claude Haiku 4.5', claude(1, 5, 0.1), ['claude-haiku-4-5-20251001']),

  openai('gpt-6.1-sol', 'GPT-6.1 Sol', gptCached(2, 10, 0.1)),
  openai('gpt-6-astra', 'GPT-6 Astra', gptCached(10, 50, 1)),
  openai('gpt-6.1-terra', 'GPT-6.1 Terra', gptCached(1, 5, 0.05, 2.5)),
  openai('gpt-6-sol', 'GPT-6 Sol', gptCached(2, 10, 0.2)),
  openai('gpt-6-luna', 'GPT-6 Luna', gptCached(0.1, 0.5, 0.01)),
  openai('gpt-5.6-sol', 'GPT-5.6 Sol', gptCached(4, 20, 0.4), ['gpt-5.6']),
  openai('gpt-5.6-terra', 'GPT-5.6 Terra', gptCached(2, 12, 0.2)),
  openai('gpt-5.6-luna', 'GPT-5.6 Luna', gptCached(0.2, 1.2, 0.02)),
  openai('gpt-5.5', 'GPT-5.5', gptLong(5, 30, 0.5)),
  openai('gpt-5.4', 'GPT-5.4', gptLong(2.5, 15, 0.25)),
  openai('gpt-5.4-mini', 'GPT-5.4 mini', gpt(0.75, 4.5, 0.075)),
  openai('gpt-5.3-codex', 'GPT-5.3 Codex', gpt(1.75, 14, 0.175)),
  openai('gpt-5.2', 'GPT-5.2', gpt(1.75, 14, 0.175)),
  openai('gpt-5.1', 'GPT-5.1', gpt(1.25, 10, 0.125)),
  openai('gpt-5', 'GPT-5', gpt(1.25, 10, 0.125)),
  openai('gpt-5-mini', 'GPT-5 mini', gpt(0.25, 2, 0.025)),
  openai('gpt-5-nano', 'GPT-5 nano', gpt(0.05, 0.4, 0.005)),

  google('gemini-4-carbon', 'Gemini 4 Carbon', doubling('2026-12-01', 2, 10, 0.1)),
  google('gemini-4-argon', 'Gemini 4 Argon', doubling('2026-12-01', 2, 10, 0.1)),
  // The price of its cache reads was not found: requests that read the cache have no cost.
  google('gemini-4-hydrogen', 'Gemini 4 Hydrogen', gemini(1.5, 7.5)),
  google('gemini-3.8-flash', 'Gemini 3.8 Flash', doubling('2027-01-01', 0.75, 3.75, 0.075)),
  google('gemini-3.7-flash', 'Gemini 3.7 Flash', doubling('2027-01-01', 0.75, 3.75, 0.075)),
  google('gemini-3.6-flash', 'Gemini 3.6 Flash', doubling('2027-01-01', 0.75, 3.75, 0.075)),
  google('gemini-3.5-flash', 'Gemini 3.5 Flash', gemini(1.5, 9)),
  google('gemini-3.5-flash-lite', 'Gemini 3.5 Flash-Lite', gemini(0.3, 2.5)),
  google('gemini-3.1-pro-preview', 'Gemini 3.1 Pro', {
    ...gemini(2, 12),
    longPrompt: { above: 200_000, ...gemini(4, 18) },
  }),
  google('gemini-2.5-pro', 'Gemini 2.5 Pro', {
    ...gemini(1.25, 10, 0.125),
    longPrompt: { above: 200_000, ...gemini(2.5, 15, 0.25) },
  }),
  google('gemini-2.5-flash', 'Gemini 2.5 Flash', gemini(0.3, 2.5, 0.03)),
  google('gemini-2.5-flash-lite', 'Gemini 2.5 Flash-Lite', gemini(0.1, 0.4, 0.01)),
]);
