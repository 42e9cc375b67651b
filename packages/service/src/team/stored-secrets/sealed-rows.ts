import { defineSealedRows } from '../../platform/secrets/seal-again.ts';

/** Purpose in the encryption of a secret: a value that is copied to another row cannot be decrypted there. */
export const purposeOfSecret = (id: string): string => `secret ${id}`;
/** Purpose of the encrypted copy of a secret that a run has. */
export const purposeOfRunSecret = (id: string): string => `secret of a run ${id}`;

/** The stored secrets. */
export const sealedSecrets = defineSealedRows({
  table: 'stored_secrets',
  id: 'id',
  sealed: 'sealed_value',
  purpose: purposeOfSecret,
});

/** The copies of secrets that runs have. */
export const sealedRunSecrets = defineSealedRows({
  table: 'run_secrets',
  id: 'id',
  sealed: 'sealed_value',
  purpose: purposeOfRunSecret,
});
