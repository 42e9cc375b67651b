import { expect, test } from 'vitest';
import { seal, unseal } from './sealed.ts';

test('an encrypted text can be decrypted only with the same secret and for the same use', () => {
  const sealed = seal('ryk_the_key', 'secret', 'a');
  expect(unseal(sealed, 'secret', 'a')).toBe('ryk_the_key');
  expect(Buffer.from(sealed, 'base64url').toString('latin1')).not.toContain('ryk');
  expect(seal('ryk_the_key', 'secret', 'a')).not.toBe(sealed);
  expect(() => unseal(sealed, 'other', 'a')).toThrow();
  expect(() => unseal(sealed, 'secret', 'b')).toThrow();
  expect(() => unseal(`${sealed.slice(0, -2)}AA`, 'secret', 'a')).toThrow();
  expect(() => unseal('', 'secret', 'a')).toThrow();
});
