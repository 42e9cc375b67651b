import type { McpServer } from '@agentclientprotocol/sdk';
import type { AmbientAgentConfig } from '@runyard/contract/config';

/** Returns the MCP servers of a run in the form of ACP, and those that the harness does not get, each with the reason. */
export function mcpServersOf(
  config: AmbientAgentConfig,
  capabilities: { stdio: boolean; http: boolean },
): { servers: McpServer[]; skipped: { name: string; reason: string }[] } {
  const servers: McpServer[] = [];
  const skipped: { name: string; reason: string }[] = [];
  for (const [name, server] of Object.entries(config.mcp_servers ?? {})) {
    if (!capabilities.stdio) skipped.push({ name, reason: 'the harness oz does not use MCP servers' });
    else if (server.command !== undefined) {
      servers.push({ name, command: server.command, args: server.args ?? [], env: pairs(server.env) });
    } else if (server.url !== undefined && capabilities.http) {
      servers.push({ type: 'http', name, url: server.url, headers: pairs(server.headers) });
    } else if (server.url !== undefined) {
      skipped.push({ name, reason: 'the harness cannot use MCP servers over HTTP' });
    } else {
      skipped.push({ name, reason: 'stored MCP servers are not available; give command or url' });
    }
  }
  return { servers, skipped };
}

function pairs(record: Record<string, string> | undefined): { name: string; value: string }[] {
  return Object.entries(record ?? {}).map(([name, value]) => ({ name, value }));
}
