import type { Domain } from '../domain.ts';
import { sealAgain } from '../secrets/seal-again.ts';
import type { Vault } from '../secrets/vault.ts';
import type { Database } from '../store/database/database.ts';
import { sealedCredentials } from './sealed-rows.ts';

/** Credentials of code hosts. */
export const codeHostsDomain = (deps: { readonly db: Database; readonly vault: Vault }): Domain => ({
  name: 'code hosts',
  sealAgain: () => sealAgain(deps.db, deps.vault, sealedCredentials),
});
