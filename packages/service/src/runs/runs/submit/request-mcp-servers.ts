import { maxMcpServersOfRun, maxSecretsOfRun } from '@runyard/contract/limits';
import type { MCPServerConfig } from '@runyard/contract/runs/config';
import { McpHeaders } from '@runyard/contract/team/mcp-servers';
import { type Fault, type NotUsable, notUsable } from '../../../platform/fault.ts';
import type { Queryable } from '../../../platform/store/database/database.ts';
import { findUnusableServers, storedId } from '../../../team/mcp/of-run.ts';
import { secretsOfServers } from '../../../team/mcp/secret-references.ts';

const maxNameLength = 100;
/** The name is used in tool names, in messages and in a path of the gateway. */
const isName = (name: string): boolean =>
  name.length <= maxNameLength && name.trim() !== '' && !/^\.+$/.test(name) && !/[\p{C}\p{Zl}\p{Zp}]/u.test(name);

function faultOfServer(path: string, { url, headers }: MCPServerConfig): Fault | undefined {
  if (url === undefined) return undefined;
  const parsed = URL.parse(url);
  if (parsed === null || !['https:', 'http:'].includes(parsed.protocol) || parsed.username || parsed.password)
    return { path: `${path}.url`, message: 'must be an https:// URL without user and password' };
  if (!McpHeaders.safeParse(headers ?? {}).success)
    return { path: `${path}.headers`, message: 'must be at most 50 names and values of HTTP headers' };
  return undefined;
}

/** `forbidden` 403: the team has no such stored server; `faults` 400. */
export type CheckedServers = NotUsable | { readonly faults: readonly Fault[] };

/** Checks the MCP servers of a request. Their addresses are checked when the gateway connects to them. */
export async function checkMcpServers(
  db: Queryable,
  teamId: string,
  servers: Readonly<Record<string, MCPServerConfig>>,
): Promise<CheckedServers> {
  const named = Object.entries(servers);
  if (named.length > maxMcpServersOfRun)
    return { faults: [{ path: 'config.mcp_servers', message: `takes at most ${maxMcpServersOfRun} servers` }] };
  if (secretsOfServers(servers).length > maxSecretsOfRun)
    return { faults: [{ path: 'config.mcp_servers', message: `names more than ${maxSecretsOfRun} secrets` }] };
  const faults: Fault[] = [];
  for (const [name, server] of named) {
    const path = `config.mcp_servers.${name}`;
    if (!isName(name)) {
      const message = `has a name that is empty, longer than ${maxNameLength} characters, only dots, or has control characters`;
      return { faults: [{ path: 'config.mcp_servers', message }] };
    }
    const fault = faultOfServer(path, server);
    if (fault) faults.push(fault);
  }
  const stored = named.flatMap(([name, server]) => {
    const id = storedId(server);
    return id === undefined ? [] : [{ name, id }];
  });
  const unusable = await findUnusableServers(
    db,
    teamId,
    stored.map(({ id }) => id),
  );
  const refused = stored.find(({ id }) => unusable.includes(id));
  return refused
    ? notUsable(`config.mcp_servers.${refused.name}`, 'stored MCP server', 'GET /agent/mcp-servers')
    : { faults };
}
