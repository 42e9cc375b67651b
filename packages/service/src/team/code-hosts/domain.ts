import type { Domain } from '../../platform/domain.ts';
import { sealAgain } from '../../platform/secrets/seal-again.ts';
import type { Vault } from '../../platform/secrets/vault.ts';
import type { Database } from '../../platform/store/database/database.ts';
import { sealedCredentials } from './sealed-rows.ts';

/** Credentials of code hosts. */
export const codeHostsDomain = (deps: { readonly db: Database; readonly vault: Vault }): Domain => ({
  name: 'code hosts',
  sealAgain: () => sealAgain(deps.db, deps.vault, sealedCredentials),
});
