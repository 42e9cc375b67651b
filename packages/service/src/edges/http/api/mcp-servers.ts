import { makeAddressRules } from '@runyard/contract/address-rules';
import { maxMcpServers } from '@runyard/contract/limits';
import type { McpServer } from '@runyard/contract/mcp-servers';
import { routes } from '@runyard/contract/routes';
import type { FastifyInstance } from 'fastify';
import type { Fault } from '../../../platform/fault.ts';
import { answerOnce } from '../../../platform/idempotency/answer-once.ts';
import { once } from '../../../platform/idempotency/once.ts';
import { invalid, notFound, refuse } from '../../../platform/serving/refusal.ts';
import { isUuid } from '../../../platform/store/database/uuid.ts';
import { checkUrl } from '../../../runs/subscriptions/check-url.ts';
import {
  createMcpServer,
  deleteMcpServer,
  listMcpServers,
  readMcpServer,
  updateMcpServer,
} from '../../../team/mcp/servers.ts';
import { addRoute } from '../server/add-route.ts';
import type { ServiceDeps } from '../server/deps.ts';

const noServer = () => notFound('MCP server');

/** Registers list, create, read, update and delete of stored MCP servers. */
export function registerMcpServerRoutes(app: FastifyInstance, { db, vault, settings }: ServiceDeps): void {
  const networks = settings.RUNYARD_ALLOW_PRIVATE_NETWORKS;
  const rules = makeAddressRules(networks);
  const faultOf = (url: string | undefined): Fault | null =>
    url === undefined ? null : checkUrl(url, rules, networks.length > 0);

  addRoute(app, routes.listMcpServers, async ({ principal }) => ({
    mcp_servers: await listMcpServers(db, principal.teamId),
  }));

  addRoute(app, routes.createMcpServer, async (call) => {
    const { principal, body } = call;
    const fault = faultOf(body.url);
    if (fault) return invalid([fault]);
    const outcome = await once<McpServer, 'too_many'>(db, call.once, async (tx) => {
      const made = await createMcpServer(tx, vault, principal, body);
      return made === 'too_many' ? { kind: 'failed', failure: made } : { kind: 'done', response: made };
    });
    return answerOnce(outcome, () =>
      refuse('conflict', { detail: `A team has at most ${maxMcpServers} MCP servers; delete one.` }),
    );
  });

  addRoute(app, routes.getMcpServer, async ({ principal, params }) => {
    const found = isUuid(params.serverId) && (await readMcpServer(db, principal.teamId, params.serverId));
    return found || noServer();
  });

  addRoute(app, routes.updateMcpServer, async ({ principal, params, body }) => {
    if (!isUuid(params.serverId)) return noServer();
    const fault = faultOf(body.url);
    if (fault) return invalid([fault]);
    const outcome = await updateMcpServer(db, vault, principal, params.serverId, body);
    if (outcome === null) return noServer();
    return outcome.kind === 'done' ? outcome.server : invalid([outcome.fault]);
  });

  addRoute(app, routes.deleteMcpServer, async ({ principal, params }) => {
    const { serverId } = params;
    const wasThere = isUuid(serverId) && (await db.transaction((tx) => deleteMcpServer(tx, principal, serverId)));
    return wasThere ? { success: true as const } : noServer();
  });
}
