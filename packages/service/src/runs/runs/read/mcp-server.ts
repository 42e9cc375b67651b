import type { MCPServerConfig } from '@runyard/contract/config';
import type { Vault } from '../../../platform/secrets/vault.ts';
import type { Queryable } from '../../../platform/store/database/database.ts';
import { defineStatement, json, nullable, uuid } from '../../../platform/store/database/statement.ts';
import { type RunMcpServer, readServersOfRun } from '../../../team/mcp/of-run.ts';

const readOfExecution = defineStatement({
  name: 'read_mcp_server_of_execution',
  text: `
    SELECT r.team_id, r.config->'mcp_servers'->$2 AS server
    FROM executions e JOIN runs r ON r.id = e.run_id WHERE e.id = $1`,
  row: { team_id: uuid, server: nullable(json<MCPServerConfig>()) },
});

/** Returns one server of an execution's run as it is stored now; null: its run has no server of this name. */
export async function readServerOfExecution(
  deps: { readonly db: Queryable; readonly vault: Vault },
  executionId: string,
  name: string,
): Promise<RunMcpServer | null> {
  const [row] = await deps.db.query(readOfExecution, [executionId, name]);
  if (!row?.server) return null;
  return (await readServersOfRun(deps, row.team_id, { [name]: row.server })).get(name) ?? null;
}
