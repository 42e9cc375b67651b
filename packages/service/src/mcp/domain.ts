import type { Domain } from '../domain.ts';
import { sealAgain } from '../secrets/seal-again.ts';
import type { Vault } from '../secrets/vault.ts';
import type { Database } from '../store/database/database.ts';
import { sealedServers } from './sealed-rows.ts';

/** Stored MCP servers. */
export const mcpDomain = (deps: { readonly db: Database; readonly vault: Vault }): Domain => ({
  name: 'MCP servers',
  sealAgain: () => sealAgain(deps.db, deps.vault, sealedServers),
});
