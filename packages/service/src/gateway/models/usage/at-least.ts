import type { TokenCounts } from '../../../models/price.ts';

/** Runs of base64 are images and files. Their size does not show their tokens. */
const encoded = /[A-Za-z0-9+/=_-]{1000,}/g;
const bytesPerToken = 4;

/** Estimates the tokens of a request from its bytes: four bytes of text are a token, encoded images and files are left out. */
export function estimatedTokens(request: readonly Buffer[]): number {
  const bytes = request.reduce((sum, part) => sum + part.toString('latin1').replaceAll(encoded, '').length, 0);
  return Math.ceil(bytes / bytesPerToken);
}

/**
 * Returns `told`, with estimates for the counts that are missing because the answer broke off: the tokens of the request, and at least
 * `passed` tokens for the answer.
 */
export function usedAtLeast(told: TokenCounts, requestTokens: number, passed: number): TokenCounts {
  const isPromptTold = told.input + told.cacheRead + told.cacheWrite > 0;
  const output = Math.max(told.output, passed);
  return isPromptTold ? { ...told, output } : { ...told, input: requestTokens, output };
}
