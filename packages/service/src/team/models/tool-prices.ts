/**
 * Prices of the providers' own tools, US dollars for one call, as published on platform.claude.com/docs/en/about-claude/pricing,
 * developers.openai.com/api/docs/pricing and ai.google.dev/gemini-api/docs/pricing. What a tool reads is billed as tokens besides.
 * Containers are billed by time: the price of their shortest time stands for each call.
 */
import type { ProviderTool } from '@runyard/contract/environments/provider-tools';
import type { ProviderName } from './providers.ts';

/** Number of calls of each tool in one answer. */
export type ToolCalls = Readonly<Partial<Record<ProviderTool, number>>>;

type Prices = Readonly<Partial<Record<ProviderTool, number>>>;

const openai: Prices = { web_search: 0.01, file_search: 0.0025, code_execution: 0.03, image_generation: 0.25 };

const prices: Readonly<Record<ProviderName, Prices>> = {
  anthropic: { web_search: 0.01, code_execution: 0.005 },
  openai,
  google: { web_search: 0.035, maps: 0.025 },
  // An endpoint of the same protocol, whose prices are not known.
  local: openai,
};

/** Returns the cost of the calls of tools in an answer, US dollars. */
export function costOfTools(provider: ProviderName, calls: ToolCalls): number {
  const known = prices[provider];
  return Object.entries(calls).reduce((sum, [tool, count]) => sum + (known[tool as ProviderTool] ?? 0) * count, 0);
}
