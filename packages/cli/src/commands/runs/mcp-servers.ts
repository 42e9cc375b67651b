/** Reads the MCP servers that `--mcp` names for a run. */
import type { Client } from '@runyard/client';
import type { AmbientAgentConfig, MCPServerConfig } from '@runyard/contract/runs/config';
import { Failure } from '../../exits/failure.ts';
import { jsonFrom } from '../../input/input-file.ts';
import { idOf } from '../../service/named.ts';

type Servers = NonNullable<AmbientAgentConfig['mcp_servers']>;

/**
 * Returns the MCP servers for a request. A word can be the name of a JSON file with servers. In this file, the servers are at the top
 * level or, as other programs write them, below the key `mcpServers`. Any other word is the name of a stored server;
 * `withStoredServers` finds its id.
 */
export function mcpServersFrom(words: readonly string[]): Servers {
  const servers: Record<string, MCPServerConfig> = {};
  for (const word of words)
    for (const [name, server] of Object.entries(serversOf(word))) {
      if (Object.hasOwn(servers, name)) throw new Failure(`--mcp: two servers are called ${JSON.stringify(name)}`, 2);
      servers[name] = server;
    }
  return servers;
}

function serversOf(word: string): Servers {
  if (!/[/\\]|\.json$/.test(word)) return { [word]: { warp_id: word } };
  const read = jsonFrom(word) as Readonly<Record<string, unknown>> | null;
  const servers = typeof read === 'object' && read !== null ? (read.mcpServers ?? read) : read;
  if (typeof servers !== 'object' || servers === null || Array.isArray(servers))
    throw new Failure(`${word} is no JSON object of MCP servers by their names`, 2);
  return servers as Servers;
}

/** Replaces the names of stored servers by their ids. */
export async function withStoredServers(client: Pick<Client, 'listMcpServers'>, servers: Servers): Promise<Servers> {
  const found = Object.entries(servers).map(async ([name, server]): Promise<[string, MCPServerConfig]> => {
    const { warp_id: wanted } = server;
    return [name, wanted === undefined ? server : { ...server, warp_id: await idOf.mcpServer(client, wanted) }];
  });
  return Object.fromEntries(await Promise.all(found));
}
