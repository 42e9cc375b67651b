import { expect } from 'vitest';
import { secrets } from './gateway.ts';

/** Test support: fails if the text contains one of the operator's keys for model providers. */
export function expectNoSecret(text: string): void {
  for (const secret of secrets) expect(text).not.toContain(secret);
}
