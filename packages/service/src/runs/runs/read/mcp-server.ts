import type { MCPServerConfig } from '@runyard/contract/runs/config';
import type { ConfigSeal } from '../../../platform/secrets/config-seal.ts';
import type { Vault } from '../../../platform/secrets/vault.ts';
import type { Database } from '../../../platform/store/database/database.ts';
import { defineStatement, json, nullable } from '../../../platform/store/database/statement.ts';
import { explainWithheld } from '../../../team/access/contents/describe-withheld.ts';
import { type RunMcpServer, readServersOfRun, storedId } from '../../../team/mcp/of-run.ts';
import { faultsOfSecrets, secretsByForm, secretsOfServers } from '../../../team/mcp/secret-references.ts';
import { describeUnusable, readRights } from '../../../team/stored-secrets/find-usable.ts';
import { copyOf, keepRunSecrets, readRunSecrets } from '../../../team/stored-secrets/run-secrets.ts';
import { readGatewayRights } from '../../executions/run-tokens/present-rights.ts';

const readConfigured = defineStatement({
  name: 'read_mcp_server_of_execution',
  text: "SELECT q.config->'mcp_servers'->$2 AS server FROM executions e JOIN run_requests q ON q.run_id = e.run_id WHERE e.id = $1",
  row: { server: nullable(json<MCPServerConfig>()) },
});

const lockRun = defineStatement({
  name: 'lock_run_for_secrets_of_server',
  text: 'SELECT FROM runs WHERE id = $1 FOR UPDATE',
  row: {},
});

/** An MCP server of a run, or in `unusable` the reason why the run may not use it now. */
export type ServerOfExecution = RunMcpServer | { readonly kind: 'unusable'; readonly message: string };

/**
 * Returns the stored values of one MCP server of an execution's run; null if the run has no server with this name. If a header names a
 * secret, the header gets the present value of the secret. The run and the authors whose texts ran in its sandbox must still
 * have the right to use the secret. If the server is stored, they must have the rights of the team.
 */
export async function readServerOfExecution(
  deps: { readonly db: Database; readonly vault: Vault; readonly configSeal: ConfigSeal },
  executionId: string,
  name: string,
): Promise<ServerOfExecution | null> {
  const { db, vault } = deps;
  const [row] = await db.query(readConfigured, [executionId, name]);
  const run = row?.server ? await readGatewayRights(db, executionId) : null;
  if (!row?.server || !run) return null;
  const { server } = row;
  const { teamId, runId, executor, contents } = run;
  const servers = { [name]: server };
  if (storedId(server) !== undefined && run.team.kind !== 'held') {
    const content = run.team.kind === 'withheld' ? { content: run.team.content } : {};
    const reason = await explainWithheld(db, teamId, executor, { right: 'team_credentials', ...content });
    return { kind: 'unusable', message: reason };
  }
  const named = new Set(secretsOfServers(servers).flatMap((each) => (each.as === 'mcp_header' ? [each.name] : [])));
  const rights = (run.rights?.secrets ?? []).filter((right) => right.as === 'mcp_header' && named.has(right.name));
  if (rights.length === 0) return (await readServersOfRun(deps, teamId, servers, secretsByForm([]))).get(name) ?? null;
  const user = { teamId, actor: executor, contents };
  const usable = await readRights(db, vault, user, rights);
  if (usable.kind === 'forbidden' || (usable.kind === 'ok' && usable.withheld.length > 0)) {
    const lost = usable.kind === 'ok' ? usable.withheld[0]?.name : usable.name;
    const message = `its headers need the secret ${lost}, which this run, or an author whose text ran in its sandbox, may not use now`;
    return { kind: 'unusable', message };
  }
  if (usable.kind !== 'ok') return { kind: 'unusable', message: `in its headers, ${describeUnusable(usable)}` };
  const [unfit] = faultsOfSecrets(servers, secretsByForm(usable.secrets));
  if (unfit) return { kind: 'unusable', message: `${unfit.path} ${unfit.message}` };
  // Store the values for redaction, so that a value that was set after the start of the sandbox is also removed from the output of the run.
  const copies = await readRunSecrets(db, vault, runId);
  const isKept = (value: string) => copies.some((copy) => copy.value === value);
  if (!usable.secrets.every(({ value }) => isKept(value)))
    await db.transaction(async (tx) => {
      await tx.query(lockRun, [runId]);
      const ids = usable.secrets.map(({ id }) => id);
      await keepRunSecrets(tx, vault, runId, usable.secrets.map(copyOf), ids);
    });
  return (await readServersOfRun(deps, teamId, servers, secretsByForm(usable.secrets))).get(name) ?? null;
}
