import type { Domain } from '../../platform/domain.ts';
import { sealAgain } from '../../platform/secrets/seal-again.ts';
import type { Vault } from '../../platform/secrets/vault.ts';
import type { Database } from '../../platform/store/database/database.ts';
import { sealedServers } from './sealed-rows.ts';

/** Stored MCP servers. */
export const mcpDomain = (deps: { readonly db: Database; readonly vault: Vault }): Domain => ({
  name: 'MCP servers',
  sealAgain: () => sealAgain(deps.db, deps.vault, sealedServers),
});
