import type { AmbientAgentConfig, MCPServerConfig } from '@runyard/contract/runs/config';
import { storedId } from '../../../team/mcp/of-run.ts';

type Servers = NonNullable<AmbientAgentConfig['mcp_servers']>;

/** `forbidden`: the name of a server that the child may not have. */
export type ChildServers = { readonly servers: Servers } | { readonly forbidden: string };

/**
 * Returns the MCP servers of a child run. An agent chooses the programs in the sandbox of its child. It reaches the network and stored
 * secrets only through servers of its own run: by the same url, whose headers are those of the parent, or by the same id.
 */
export function childMcpServers(parent: Servers, own: Servers): ChildServers {
  const servers: Servers = {};
  for (const [name, server] of Object.entries(own)) {
    const granted = server.command === undefined ? grantedBy(parent, server) : server;
    if (granted === undefined) return { forbidden: name };
    servers[name] = granted;
  }
  return { servers };
}

function grantedBy(parent: Servers, { url, headers, ...server }: MCPServerConfig): MCPServerConfig | undefined {
  if (url === undefined)
    return Object.values(parent).find((each) => each.command === undefined && storedId(each) === storedId(server));
  return headers === undefined ? Object.values(parent).find((each) => each.url === url) : undefined;
}
