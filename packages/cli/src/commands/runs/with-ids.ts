import type { Client } from '@runyard/client';
import type { AmbientAgentConfig } from '@runyard/contract/runs/config';
import { idOf } from '../../service/named.ts';
import { withStoredServers } from './mcp-servers.ts';

/** Replaces the names of an environment and of MCP servers in the configuration of a request by their ids. */
export async function withIds<T extends { readonly config?: AmbientAgentConfig | undefined }>(
  client: Client,
  request: T,
): Promise<T> {
  if (request.config === undefined) return request;
  const { environment_id: environment, mcp_servers: servers } = request.config;
  return {
    ...request,
    config: {
      ...request.config,
      ...(environment === undefined ? {} : { environment_id: await idOf.environment(client, environment) }),
      ...(servers === undefined ? {} : { mcp_servers: await withStoredServers(client, servers) }),
    },
  };
}
