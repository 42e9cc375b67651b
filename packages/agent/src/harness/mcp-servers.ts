import type { McpServer } from '@agentclientprotocol/sdk';
import type { HarnessMcpServer } from '../mcp/servers.ts';

/** Returns the MCP servers of a run in the form of ACP, and those that the harness does not get, each with the reason. */
export function mcpServersOf(
  given: readonly HarnessMcpServer[],
  capabilities: { readonly http: boolean },
): { servers: McpServer[]; skipped: { name: string; reason: string }[] } {
  const servers: McpServer[] = [];
  const skipped: { name: string; reason: string }[] = [];
  for (const server of given) {
    const { name } = server;
    if ('command' in server) {
      const env = Object.entries(server.env).map(([variable, value]) => ({ name: variable, value }));
      servers.push({ name, command: server.command, args: [...server.args], env });
    } else if (capabilities.http) servers.push({ type: 'http', name, url: server.url, headers: [] });
    else skipped.push({ name, reason: 'the harness cannot use MCP servers over HTTP' });
  }
  return { servers, skipped };
}
