/** Checks the configuration of a run that a request creates: its worker, its runner and its MCP servers. */

import { maxMcpServersOfRun, maxSecretsOfRun } from '@runyard/contract/limits';
import type { AmbientAgentConfig, MCPServerConfig } from '@runyard/contract/runs/config';
import { runnerOf } from '@runyard/contract/runs/runner';
import { McpHeaders } from '@runyard/contract/team/mcp-servers';
import { workerName } from '@runyard/contract/workers/worker-name';
import { type Fault, type NotUsable, notUsable } from '../../../platform/fault.ts';
import type { Queryable } from '../../../platform/store/database/database.ts';
import { findUnusableServers, storedId } from '../../../team/mcp/of-run.ts';
import { secretsOfServers } from '../../../team/mcp/secret-references.ts';

/** Values of `worker_host` that published clients use for the hosted pool. */
const hostedPool = ['', 'warp', 'runyard'];

/** Returns the name of the self-hosted worker that a configuration names; undefined means the hosted pool. */
export const workerHostOf = ({ worker_host }: Pick<AmbientAgentConfig, 'worker_host'>): string | undefined =>
  hostedPool.includes(worker_host ?? '') ? undefined : worker_host;

/** Maximum size of the configuration of a run, in UTF-16 units of its JSON. */
export const maxConfigLength = 1024 * 1024;
const maxNameLength = 500;

/** Checks those members of a configuration for which no table must be read, and adds their faults. */
export function checkConfig(config: AmbientAgentConfig, keepsLacking: boolean | undefined, faults: Fault[]): void {
  const tooLong = (path: string, max: number) => faults.push({ path, message: `must be at most ${max} characters` });
  if ((config.name?.length ?? 0) > maxNameLength) tooLong('config.name', maxNameLength);
  if (!workerName.test(workerHostOf(config) ?? 'hosted')) {
    faults.push({
      path: 'config.worker_host',
      message: 'no worker can have this name: it must be 1 to 63 characters of [A-Za-z0-9._-]',
    });
  }
  // Check the type too: the schema has checked the configuration of the request, but a stored configuration may be older than this member.
  const runner = runnerOf(config);
  if (config.runner_config !== undefined && runner === undefined)
    faults.push({ path: 'config.runner_config', message: 'must have docker_image, the name of a container image' });
  if (runner?.os === 'macos' && !keepsLacking)
    faults.push({
      path: 'config.runner_config.os',
      message: 'no worker of this service runs macos; choose a runner with linux',
    });
  else if (runner?.arch === 'aarch64' && workerHostOf(config) === undefined && !keepsLacking)
    faults.push({
      path: 'config.runner_config.arch',
      message: 'aarch64 cannot be chosen in the hosted pool; name a worker of this kind with worker_host',
    });
  if (JSON.stringify(config).length > maxConfigLength) faults.push({ path: 'config', message: 'must be at most 1 MB' });
}

const maxServerNameLength = 100;
/** Limit the characters of the name, because it appears in tool names, in messages and in a path of the gateway. */
const isName = (name: string): boolean =>
  name.length <= maxServerNameLength && name.trim() !== '' && !/^\.+$/.test(name) && !/[\p{C}\p{Zl}\p{Zp}]/u.test(name);

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

/** Checks the MCP servers of a request. The gateway checks the addresses of the servers when it connects to them. */
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
      const message = `has a name that is empty, longer than ${maxServerNameLength} characters, only dots, or has control characters`;
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
