import type { MCPServerConfig } from '@runyard/contract/runs/config';
import type { ConfigSeal } from '../../../platform/secrets/config-seal.ts';
import type { Vault } from '../../../platform/secrets/vault.ts';
import type { Database } from '../../../platform/store/database/database.ts';
import { defineStatement, json, nullable, text, uuid } from '../../../platform/store/database/statement.ts';
import type { RunActor } from '../../../team/access/actor.ts';
import type { RunContent } from '../../../team/access/contents/content.ts';
import type { RunRights } from '../../../team/access/contents/run-rights.ts';
import { unexpectedPool } from '../../../team/access/worker-pools/pools.ts';
import { type RunMcpServer, readServersOfRun } from '../../../team/mcp/of-run.ts';
import { faultsOfSecrets, secretsByForm, secretsOfServers } from '../../../team/mcp/secret-references.ts';
import { describeUnusable, readRights } from '../../../team/stored-secrets/find-usable.ts';
import { copyOf, keepRunSecrets, readRunSecrets } from '../../../team/stored-secrets/run-secrets.ts';
import { isOfTurnByOther } from '../../executions/run-tokens/sessions.ts';

const readOfExecution = defineStatement({
  name: 'read_mcp_server_of_execution',
  text: `
    SELECT r.id AS run_id, r.team_id, r.config->'mcp_servers'->$2 AS server, r.rights, r.contents, ${unexpectedPool('r', 'e')} AS pool,
      r.executor_kind, r.executor_uid
    FROM executions e JOIN runs r ON r.id = e.run_id WHERE e.id = $1`,
  row: {
    run_id: uuid,
    team_id: uuid,
    server: nullable(json<MCPServerConfig>()),
    rights: nullable(json<RunRights>()),
    contents: json<RunContent[]>(),
    pool: nullable(json<readonly RunContent[]>()),
    executor_kind: text<RunActor['kind']>(),
    executor_uid: text(),
  },
});

const readTurnAuthors = defineStatement({
  name: 'read_authors_of_turn',
  text: `
    SELECT DISTINCT f.created_by_kind AS kind, f.created_by_uid AS uid
    FROM executions e JOIN runs r ON r.id = e.run_id JOIN followups f ON ${isOfTurnByOther('r', 'e')} WHERE e.id = $1`,
  row: { kind: text<RunActor['kind'] | 'run'>(), uid: text() },
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
 * secret, the header gets the present value of the secret. The run and the author of the present turn must both still have the right to
 * use the secret.
 */
export async function readServerOfExecution(
  deps: { readonly db: Database; readonly vault: Vault; readonly configSeal: ConfigSeal },
  executionId: string,
  name: string,
): Promise<ServerOfExecution | null> {
  const { db, vault } = deps;
  const [row] = await db.query(readOfExecution, [executionId, name]);
  if (!row?.server) return null;
  const { server, team_id: teamId, run_id: runId } = row;
  const servers = { [name]: server };
  const named = new Set(secretsOfServers(servers).flatMap((each) => (each.as === 'mcp_header' ? [each.name] : [])));
  const rights = (row.rights?.secrets ?? []).filter((right) => right.as === 'mcp_header' && named.has(right.name));
  if (rights.length === 0) return (await readServersOfRun(deps, teamId, servers, secretsByForm([]))).get(name) ?? null;
  const authors = await db.query(readTurnAuthors, [executionId]);
  const ofTurn = authors.map(({ kind, uid }): RunContent => {
    // If another run sent a text, use null as the author, because not all authors of that run's texts are known.
    const author = kind === 'run' ? null : { kind, uid };
    return { kind: 'conversation', author, accepted: false };
  });
  const contents = [...row.contents, ...(row.pool ?? []), ...ofTurn];
  const user = { teamId, actor: { kind: row.executor_kind, uid: row.executor_uid }, contents };
  const usable = await readRights(db, vault, user, rights);
  if (usable.kind === 'forbidden' || (usable.kind === 'ok' && usable.withheld.length > 0)) {
    const lost = usable.kind === 'ok' ? usable.withheld[0]?.name : usable.name;
    const message = `the secret ${lost} in its headers may not be used now, by this run or by the author of its present turn`;
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
