import type { TaskMcpServer } from '@runyard/contract/agent-protocol';
import type { AmbientAgentConfig } from '@runyard/contract/config';
import { gatewayPathOfServer } from '../../mcp/gateway-path.ts';
import { type RunMcpServer, readServersOfRun } from '../../mcp/of-run.ts';
import type { Vault } from '../../secrets/vault.ts';
import type { Queryable } from '../../store/database/database.ts';

/** The MCP servers of a task, and the configuration without them; or why the agent cannot have them. */
export type TaskServers =
  | { readonly kind: 'servers'; readonly servers: readonly TaskMcpServer[]; readonly config: AmbientAgentConfig }
  | { readonly kind: 'mcp_server_gone' | 'mcp_server_sealed'; readonly message: string };

/** Returns what the agent gets of the run's MCP servers: of those over HTTP neither address nor headers. */
export async function mcpServersOfTask(
  deps: { readonly db: Queryable; readonly vault: Vault },
  teamId: string,
  { mcp_servers: described = {}, ...config }: AmbientAgentConfig,
): Promise<TaskServers> {
  const servers: TaskMcpServer[] = [];
  for (const [name, server] of await readServersOfRun(deps, teamId, described)) {
    const problem = problemOf(name, server);
    if (problem) return problem;
    if (server.kind === 'command')
      servers.push({ name, command: server.command, args: [...server.args], env: { ...server.env } });
    else servers.push({ name, gateway_path: gatewayPathOfServer(name) });
  }
  return { kind: 'servers', servers, config };
}

function problemOf(name: string, server: RunMcpServer): Exclude<TaskServers, { kind: 'servers' }> | undefined {
  const path = `config.mcp_servers.${name}`;
  if (server.kind === 'gone') {
    const message = `${path}: the stored MCP server ${server.id} was deleted. Create a run with another one.`;
    return { kind: 'mcp_server_gone', message };
  }
  if (server.kind === 'sealed') {
    const message = `${path}: the values of the stored MCP server ${server.id} were sealed with another key. Set them again with PATCH /agent/mcp-servers/${server.id}.`;
    return { kind: 'mcp_server_sealed', message };
  }
  return undefined;
}
