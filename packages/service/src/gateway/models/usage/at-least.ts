import type { TokenCounts } from '../../../models/price.ts';

/** Runs of base64 are images and files: their size says nothing of their tokens. */
const encoded = /[A-Za-z0-9+/=_-]{1000,}/g;
const bytesPerToken = 4;

/**
 * Returns `told` with an estimate in place of what the provider had not told yet when its answer was broken off: four bytes
 * of the request are a token, and the answer has `passed` tokens at least.
 */
export function usedAtLeast(told: TokenCounts, request: Buffer, passed: number): TokenCounts {
  const isPromptTold = told.input + told.cacheRead + told.cacheWrite > 0;
  const output = Math.max(told.output, passed);
  if (isPromptTold) return { ...told, output };
  const text = request.toString('utf8').replaceAll(encoded, '');
  return { ...told, input: Math.ceil(Buffer.byteLength(text) / bytesPerToken), output };
}
