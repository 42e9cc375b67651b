import { maxMcpServers } from '@runyard/contract/limits';
import { routes } from '@runyard/contract/routes';
import type { Settings } from '@runyard/contract/settings/settings';
import { makeAddressRules } from '@runyard/system/address-rules';
import { checkUrl } from '../../platform/check-url.ts';
import type { Vault } from '../../platform/secrets/vault.ts';
import { invalid, notFound, refuse } from '../../platform/serving/refusal.ts';
import type { ServedRoute } from '../../platform/serving/served-route.ts';
import type { Database } from '../../platform/store/database/database.ts';
import { isUuid } from '../../platform/store/database/uuid.ts';
import { type FindWaiting, withWaiting } from '../access/contents/waiting-after-change.ts';
import { serve, serveOnce } from '../access/serve.ts';
import { createMcpServer, deleteMcpServer, listMcpServers, readMcpServer, updateMcpServer } from './servers.ts';

const noServer = () => notFound('MCP server');

export interface McpRouteDeps {
  readonly db: Database;
  readonly vault: Vault;
  readonly findWaiting: FindWaiting;
  readonly settings: Pick<Settings, 'RUNYARD_ALLOW_PRIVATE_NETWORKS'>;
}

/** Returns the refusal of a URL that the service must not call; null if the service may call it. */
function refuseUrl({ RUNYARD_ALLOW_PRIVATE_NETWORKS: networks }: McpRouteDeps['settings'], url: string | undefined) {
  const fault = url === undefined ? null : checkUrl(url, makeAddressRules(networks), networks.length > 0);
  return fault && invalid([fault]);
}

/** Routes that list, create, read, update and delete stored MCP servers. */
export const mcpRoutes = ({ db, vault, settings, findWaiting }: McpRouteDeps): readonly ServedRoute[] => [
  serve(routes.listMcpServers, async ({ principal }) => ({
    mcp_servers: await listMcpServers(db, principal.teamId),
  })),

  serveOnce(routes.createMcpServer, {
    check: async ({ body }) => refuseUrl(settings, body.url),
    work: async (tx, { principal, body }) => {
      const made = await createMcpServer(tx, vault, principal, body);
      if (made !== 'too_many') return made;
      return refuse('conflict', { detail: `A team has at most ${maxMcpServers} MCP servers; delete one.` });
    },
  }),

  serve(routes.getMcpServer, async ({ principal, params }) => {
    const found = isUuid(params.serverId) && (await readMcpServer(db, principal.teamId, params.serverId));
    return found || noServer();
  }),

  serve(routes.updateMcpServer, async ({ principal, params, body }) => {
    if (!isUuid(params.serverId)) return noServer();
    const refused = refuseUrl(settings, body.url);
    if (refused) return refused;
    const outcome = await updateMcpServer(db, vault, principal, params.serverId, body);
    if (outcome === null) return noServer();
    if (outcome.kind !== 'done') return invalid([outcome.fault]);
    return await withWaiting(outcome.server, findWaiting(db, principal, 'mcp_server', outcome.server.id));
  }),

  serve(routes.deleteMcpServer, async ({ principal, params }) => {
    const { serverId } = params;
    const wasThere = isUuid(serverId) && (await db.transaction((tx) => deleteMcpServer(tx, principal, serverId)));
    return wasThere ? { success: true as const } : noServer();
  }),
];
