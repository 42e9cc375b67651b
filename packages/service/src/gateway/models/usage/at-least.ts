import type { TokenCounts } from '../../../models/price.ts';

/** Runs of base64 are images and files: their size says nothing of their tokens. */
const encoded = /[A-Za-z0-9+/=_-]{1000,}/g;
const bytesPerToken = 4;

/** Estimates the tokens of a request from its bytes: four bytes of text are a token, encoded images and files are left out. */
export function estimatedTokens(request: readonly Buffer[]): number {
  const bytes = request.reduce((sum, part) => sum + part.toString('latin1').replaceAll(encoded, '').length, 0);
  return Math.ceil(bytes / bytesPerToken);
}

/**
 * Returns `told` with estimates in place of what the provider had not told yet when its answer was broken off: the tokens
 * of the request, and that the answer has `passed` tokens at least.
 */
export function usedAtLeast(told: TokenCounts, requestTokens: number, passed: number): TokenCounts {
  const isPromptTold = told.input + told.cacheRead + told.cacheWrite > 0;
  const output = Math.max(told.output, passed);
  return isPromptTold ? { ...told, output } : { ...told, input: requestTokens, output };
}
