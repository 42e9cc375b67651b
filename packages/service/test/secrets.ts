import { expect } from 'vitest';
import { secrets } from './gateway.ts';

/** Test support: fails if the text contains a key of the operator. */
export function expectNoSecret(text: string): void {
  for (const secret of secrets) expect(text).not.toContain(secret);
}
