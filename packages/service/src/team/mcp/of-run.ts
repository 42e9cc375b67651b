/** Reads the MCP servers of a run: servers that the run's configuration describes, and stored servers that it names. */
import type { AmbientAgentConfig, MCPServerConfig } from '@runyard/contract/runs/config';
import type { ConfigSeal } from '../../platform/secrets/config-seal.ts';
import type { Vault } from '../../platform/secrets/vault.ts';
import type { Queryable } from '../../platform/store/database/database.ts';
import {
  bytes,
  defineStatement,
  integer,
  json,
  nullable,
  text,
  uuid,
} from '../../platform/store/database/statement.ts';
import { isUuid } from '../../platform/store/database/uuid.ts';
import { openHeaders } from './literal-headers.ts';
import { openValues, type ServerValues } from './sealed-values.ts';
import { putSecrets, type SecretsByForm } from './secret-references.ts';

const readStored = defineStatement({
  name: 'read_mcp_servers_to_use',
  text: `
    SELECT id, CASE WHEN team_id = $1 THEN command END AS command, CASE WHEN team_id = $1 THEN args END AS args,
      CASE WHEN team_id = $1 THEN url END AS url, CASE WHEN team_id = $1 THEN sealed_values END AS sealed_values, revision
    FROM mcp_servers WHERE id = ANY($2)`,
  row: {
    id: uuid,
    command: nullable(text()),
    args: nullable(json<string[]>()),
    url: nullable(text()),
    /** NULL if the server belongs to another team. */
    sealed_values: nullable(bytes),
    /** Revision of the command. */
    revision: integer,
  },
});

/** A server that a run can use, with the values of its secrets. */
export type RunMcpServer =
  | {
      readonly kind: 'command';
      readonly command: string;
      readonly args: readonly string[];
      readonly env: ServerValues;
      /** Id and revision of the stored server; absent if the configuration itself describes the server. */
      readonly stored?: { readonly id: string; readonly revision: number };
    }
  | {
      readonly kind: 'url';
      readonly url: string;
      readonly headers: ServerValues;
      /** Values of secrets in `headers`. */
      readonly secrets: readonly string[];
    }
  /** The server was deleted, or is not in this team. */
  | { readonly kind: 'gone'; readonly id: string }
  /** The values of the server were encrypted with another key. `id`: the id of the stored server, or the URL of a described one. */
  | { readonly kind: 'sealed'; readonly id: string };

/**
 * Returns the id of the stored server that a configuration names; undefined if the configuration describes the server
 * itself.
 */
export const storedId = (server: MCPServerConfig): string | undefined => server.warp_id ?? server.id;

/** Returns the stored servers that a configuration names and the team does not have. */
export async function findUnusableServers(
  db: Queryable,
  teamId: string,
  ids: readonly string[],
): Promise<readonly string[]> {
  const known = ids.filter(isUuid);
  const found = known.length === 0 ? [] : await db.query(readStored, [teamId, known]);
  const own = new Set(found.flatMap((row) => (row.sealed_values === null ? [] : [row.id])));
  return ids.filter((id) => !own.has(id.toLowerCase()));
}

/** Returns the servers of a configuration by name. Names of secrets are replaced by the values in `secrets`. */
export async function readServersOfRun(
  { db, vault, configSeal }: { readonly db: Queryable; readonly vault: Vault; readonly configSeal: ConfigSeal },
  teamId: string,
  servers: NonNullable<AmbientAgentConfig['mcp_servers']>,
  secrets: SecretsByForm,
): Promise<ReadonlyMap<string, RunMcpServer>> {
  const ids = Object.values(servers).flatMap((server) => storedId(server) ?? []);
  const known = ids.filter(isUuid);
  const rows = known.length === 0 ? [] : await db.query(readStored, [teamId, known]);
  const of = async (server: MCPServerConfig): Promise<RunMcpServer> => {
    const { command, args = [], env = {}, url, headers = {} } = server;
    if (command !== undefined)
      return { kind: 'command', command, args, env: putSecrets(env, secrets.mcp_variable).values };
    if (url !== undefined) {
      const opened = await openHeaders(configSeal, teamId, { url, headers });
      if (opened === null) return { kind: 'sealed', id: url };
      const filled = putSecrets(opened, secrets.mcp_header);
      return { kind: 'url', url, headers: filled.values, secrets: filled.used };
    }
    const id = storedId(server) ?? '';
    const row = rows.find((each) => each.id === id.toLowerCase());
    if (!row?.sealed_values) return { kind: 'gone', id };
    const values = openValues(vault, row.id, row.sealed_values);
    if (values === null) return { kind: 'sealed', id };
    return row.command === null
      ? { kind: 'url', url: row.url ?? '', headers: values, secrets: [] }
      : {
          kind: 'command',
          command: row.command,
          args: row.args ?? [],
          env: values,
          stored: { id: row.id, revision: row.revision },
        };
  };
  const found = new Map<string, RunMcpServer>();
  for (const [name, server] of Object.entries(servers)) found.set(name, await of(server));
  return found;
}
