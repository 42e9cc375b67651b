import type { TaskMcpServer } from '@runyard/contract/agent/agent-protocol';
import type { AmbientAgentConfig } from '@runyard/contract/runs/config';
import type { ConfigSeal } from '../../../platform/secrets/config-seal.ts';
import type { Vault } from '../../../platform/secrets/vault.ts';
import type { Queryable } from '../../../platform/store/database/database.ts';
import type { RunContent } from '../../../team/access/contents/content.ts';
import { gatewayPathOfServer } from '../../../team/mcp/gateway-path.ts';
import { type RunMcpServer, readServersOfRun } from '../../../team/mcp/of-run.ts';
import type { ServerValues } from '../../../team/mcp/sealed-values.ts';
import { faultsOfSecrets, type SecretsByForm } from '../../../team/mcp/secret-references.ts';
import type { RunSecret } from '../../../team/stored-secrets/run-secrets.ts';

/** The MCP servers of a task, and the run's configuration without them; or the reason why the agent cannot have the servers. */
export type TaskServers =
  | {
      readonly kind: 'servers';
      readonly servers: readonly TaskMcpServer[];
      readonly config: AmbientAgentConfig;
      /** Values of the environment variables and headers of the servers, which may be secrets. */
      readonly values: readonly RunSecret[];
    }
  | { readonly kind: 'mcp_server_gone' | 'mcp_server_sealed' | 'secret_unusable'; readonly message: string };

/**
 * Returns the run's MCP servers as the agent gets them: for servers over HTTP, without the address and the headers. `whyNotStored`: why the run
 * may not use what belongs to the team; undefined if it may.
 */
export async function mcpServersOfTask(
  deps: { readonly db: Queryable; readonly vault: Vault; readonly configSeal: ConfigSeal },
  teamId: string,
  { mcp_servers: described = {}, ...config }: AmbientAgentConfig,
  contents: readonly RunContent[],
  { secrets, whyNotStored }: { readonly secrets: SecretsByForm; readonly whyNotStored: string | undefined },
): Promise<TaskServers> {
  const [unfit] = faultsOfSecrets(described, secrets);
  if (unfit) return { kind: 'secret_unusable', message: `${unfit.path} ${unfit.message}.` };
  const servers: TaskMcpServer[] = [];
  const values: RunSecret[] = [];
  for (const [name, server] of await readServersOfRun(deps, teamId, described, secrets)) {
    if (server.kind === 'gone' || server.kind === 'sealed') return problemOf(name, server);
    if (server.kind === 'command') {
      // The values of a stored server belong to the team, and would get into the sandbox.
      if (server.stored && whyNotStored !== undefined)
        return { kind: 'secret_unusable', message: `config.mcp_servers.${name}: ${whyNotStored}` };
      if (server.stored && server.stored.revision !== revisionOf(contents, server.stored.id))
        return changedProblem(name, server.stored.id);
      servers.push({ name, command: server.command, args: [...server.args], env: { ...server.env } });
      values.push(...Object.values(server.env).map((value) => ({ name, kind: 'configured' as const, value })));
    } else {
      servers.push({ name, gateway_path: gatewayPathOfServer(name) });
      values.push(...partsOfHeaders(server.headers).map((value) => ({ name, kind: 'withheld' as const, value })));
    }
  }
  return { kind: 'servers', servers, config, values };
}

/**
 * Returns the revision of a stored server that the run executes. Runs that were created before servers had revisions execute the first
 * revision.
 */
const revisionOf = (contents: readonly RunContent[], id: string): number =>
  contents.find(({ kind, uid }) => kind === 'mcp_server' && uid === id)?.revision ?? 1;

/**
 * Returns the error message for a stored server that was changed after the run was created. The run cannot use the changed server:
 * the values of earlier revisions are not stored, and the run has rights only for the revision with which it was created.
 */
function changedProblem(name: string, id: string): Exclude<TaskServers, { kind: 'servers' }> {
  const message = `config.mcp_servers.${name}: the stored MCP server ${id} was changed after the run was created. Create a run again.`;
  return { kind: 'mcp_server_gone', message };
}

/** Returns the values of headers. If a value begins with a scheme such as `Bearer`, also returns the part after the scheme. */
const partsOfHeaders = (headers: ServerValues): string[] =>
  Object.values(headers).flatMap((value) => [value, ...(/^[A-Za-z]+ +(.+)$/.exec(value)?.slice(1) ?? [])]);

function problemOf(
  name: string,
  server: Extract<RunMcpServer, { kind: 'gone' | 'sealed' }>,
): Exclude<TaskServers, { kind: 'servers' }> {
  const path = `config.mcp_servers.${name}`;
  if (server.kind === 'gone') {
    const message = `${path}: the stored MCP server ${server.id} was deleted. Create a run with another one.`;
    return { kind: 'mcp_server_gone', message };
  }
  if (server.id.includes('/'))
    return {
      kind: 'mcp_server_sealed',
      message: `${path}.headers: the headers for ${server.id} were sealed with another key, URL or name. Send their values again.`,
    };
  const message = `${path}: the values of the stored MCP server ${server.id} were sealed with another key. Set them again with PATCH /agent/mcp-servers/${server.id}.`;
  return { kind: 'mcp_server_sealed', message };
}
