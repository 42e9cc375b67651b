import { expect } from 'vitest';
import { secrets } from './gateway.ts';

/** Test support: fails where the text holds a key of the operator. */
export function expectNoSecret(text: string): void {
  for (const secret of secrets) expect(text).not.toContain(secret);
}
