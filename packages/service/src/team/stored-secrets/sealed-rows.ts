import { defineSealedRows } from '../../platform/secrets/seal-again.ts';

/** Returns the purpose with which a secret is encrypted. Because of it, a value that is copied to another row cannot be decrypted there. */
export const purposeOfSecret = (id: string): string => `secret ${id}`;
/** Returns the purpose with which a run's copy of a secret is encrypted. */
export const purposeOfRunSecret = (id: string): string => `secret of a run ${id}`;

/** The stored secrets. */
export const sealedSecrets = defineSealedRows({
  table: 'stored_secrets',
  id: 'id',
  sealed: 'sealed_value',
  purpose: purposeOfSecret,
});

/** Names the columns with the encrypted copies of secrets that runs have. */
export const sealedRunSecrets = defineSealedRows({
  table: 'run_secrets',
  id: 'id',
  sealed: 'sealed_value',
  purpose: purposeOfRunSecret,
});
