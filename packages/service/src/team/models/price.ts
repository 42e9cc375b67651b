import type { ProviderTool } from '@runyard/contract/environments/provider-tool-names';
import type { ProviderName } from './providers.ts';

/** Prices in US dollars per million tokens. If a member is absent, the price is unknown, and not zero. */
export interface Rates {
  readonly input: number;
  readonly output: number;
  readonly cacheRead?: number;
  /** Price of a token that is written to the short-lived cache: 5 minutes at Anthropic, 30 minutes at OpenAI. */
  readonly cacheWrite?: number;
  /** Price of a token that is written to the long-lived cache: 1 hour at Anthropic, 12 hours at OpenAI. */
  readonly cacheWriteLong?: number;
}

/** The prices of a model from one day on. */
export interface Price extends Rates {
  /** First day of these prices in UTC, `YYYY-MM-DD`; absent: they apply from the beginning. */
  readonly from?: string;
  /** Rates for the whole request if its prompt, with its cached tokens, has more tokens than `above`. */
  readonly longPrompt?: Rates & { readonly above: number };
}

/** Numbers of tokens of one request. Each token is counted in one of the first four members. `cacheWriteLong` is a part of `cacheWrite`. */
export interface TokenCounts {
  readonly input: number;
  readonly output: number;
  readonly cacheRead: number;
  readonly cacheWrite: number;
  readonly cacheWriteLong: number;
}

/** Cost of one request in US dollars, by kind of token. */
export interface Cost {
  readonly input: number;
  readonly output: number;
  readonly cacheRead: number;
  readonly cacheWrite: number;
}

/** Returns the price at the time `at`. `prices` are sorted by their first days. */
export function priceAt(prices: readonly Price[], at: Date): Price | undefined {
  const day = at.toISOString().slice(0, 10);
  return prices.findLast((price) => price.from === undefined || price.from <= day);
}

/** Returns the cost of `tokens` at `price`; null if the price of a used kind of token is unknown. */
export function costOf(tokens: TokenCounts, price: Price | undefined): Cost | null {
  if (price === undefined) return null;
  const prompt = tokens.input + tokens.cacheRead + tokens.cacheWrite;
  const rates = price.longPrompt !== undefined && prompt > price.longPrompt.above ? price.longPrompt : price;
  const part = (count: number, rate: number | undefined): number | null =>
    count === 0 ? 0 : rate === undefined ? null : (count * rate) / 1_000_000;
  const input = part(tokens.input, rates.input);
  const output = part(tokens.output, rates.output);
  const cacheRead = part(tokens.cacheRead, rates.cacheRead);
  const short = part(tokens.cacheWrite - tokens.cacheWriteLong, rates.cacheWrite);
  const long = part(tokens.cacheWriteLong, rates.cacheWriteLong);
  if (input === null || output === null || cacheRead === null || short === null || long === null) return null;
  return { input, output, cacheRead, cacheWrite: short + long };
}

/** Returns the sum of the parts in US dollars. */
export function totalOf(cost: Cost): number {
  return cost.input + cost.output + cost.cacheRead + cost.cacheWrite;
}

/** Returns the rates of the request. Each unknown rate is replaced by the highest known rate. */
function dearestRates(price: Price): Required<Rates> {
  const known = [price, price.longPrompt].flatMap((rates) =>
    rates ? [rates.input, rates.cacheRead ?? 0, rates.cacheWrite ?? 0, rates.cacheWriteLong ?? 0] : [],
  );
  const most = Math.max(...known);
  const output = Math.max(price.output, price.longPrompt?.output ?? 0);
  return { input: most, output, cacheRead: most, cacheWrite: most, cacheWriteLong: most };
}

/**
 * Returns the amount in US dollars that a request counts against budgets. This is its cost, or the cost at the highest known rates if the
 * price of a kind of token is unknown. Returns 0 for a model without any price, because budgets in dollars do not allow requests to such a
 * model.
 */
export function chargeOf(tokens: TokenCounts, price: Price | undefined): number {
  const known = costOf(tokens, price);
  if (known !== null) return totalOf(known);
  const atMost = price && costOf(tokens, dearestRates(price));
  return atMost ? totalOf(atMost) : 0;
}

/** Returns the highest possible cost, in US dollars, of a request with this number of tokens. */
export function mostCost(tokens: { readonly prompt: number; readonly output: number }, price: Price): number {
  const { input, output } = dearestRates(price);
  return (tokens.prompt * input + tokens.output * output) / 1_000_000;
}

/** Number of calls of each of the provider's tools in one answer. */
export type ToolCalls = Readonly<Partial<Record<ProviderTool, number>>>;

/**
 * Prices of the providers' own tools, in US dollars for one call. They were published on platform.claude.com/docs/en/about-claude/pricing,
 * developers.openai.com/api/docs/pricing and ai.google.dev/gemini-api/docs/pricing. The input that a tool reads is also billed as tokens.
 * Providers bill containers by time; here each call of such a tool costs as much as the shortest time that is billed.
 */
type Prices = Readonly<Partial<Record<ProviderTool, number>>>;

const openai: Prices = { web_search: 0.01, file_search: 0.0025, code_execution: 0.03, image_generation: 0.25 };

const prices: Readonly<Record<ProviderName, Prices>> = {
  anthropic: { web_search: 0.01, code_execution: 0.005 },
  openai,
  google: { web_search: 0.035, maps: 0.025 },
  // The endpoint uses the protocol of OpenAI, but the prices of its tools are unknown.
  local: openai,
};

/** Returns the cost, in US dollars, of the calls of the provider's tools in an answer. */
export function costOfTools(provider: ProviderName, calls: ToolCalls): number {
  const known = prices[provider];
  return Object.entries(calls).reduce((sum, [tool, count]) => sum + (known[tool as ProviderTool] ?? 0) * count, 0);
}
