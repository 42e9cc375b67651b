import type { Domain } from '../../platform/domain.ts';
import { sealAgain } from '../../platform/secrets/seal-again.ts';
import { type McpRouteDeps, mcpRoutes } from './routes.ts';
import { sealedServers } from './sealed-values.ts';

/** Stored MCP servers. */
export const mcpDomain = (deps: McpRouteDeps): Domain => ({
  name: 'MCP servers',
  routes: () => mcpRoutes(deps),
  sealAgain: () => sealAgain(deps.db, deps.vault, sealedServers),
});
