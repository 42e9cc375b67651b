import type { Repository } from '@runyard/contract/environments/repositories';
import type { Queryable } from '../../../platform/store/database/database.ts';
import { defineStatement, json, nullable } from '../../../platform/store/database/statement.ts';
import { configOfRun } from '../../../team/environments/config-of-run.ts';
import { mayUse } from '../../../team/environments/may-use.ts';
import { readGatewayRights } from '../../executions/run-tokens/present-rights.ts';

const readOfExecution = defineStatement({
  name: 'read_repositories_of_execution',
  text: `
    SELECT ${configOfRun('env', 'r')}->'github_repos' AS repositories
    FROM executions e JOIN runs r ON r.id = e.run_id
    JOIN environments env ON env.uid = r.environment_id AND ${mayUse('env', 'r')}
    WHERE e.id = $1`,
  row: { repositories: nullable(json<Repository[]>()) },
});

const readProtected = defineStatement({
  name: 'read_protected_branches_of_execution',
  text: `
    SELECT ${configOfRun('env', 'r')}->'protected_branches' AS protected_branches, env.config->'protected_branches' AS present
    FROM executions e JOIN runs r ON r.id = e.run_id
    JOIN environments env ON env.uid = r.environment_id AND ${mayUse('env', 'r')}
    WHERE e.id = $1`,
  row: { protected_branches: nullable(json<string[]>()), present: nullable(json<string[]>()) },
});

/**
 * Returns the patterns for the branches to which the run of an execution cannot push; `HEAD` is the default branch. This includes branches
 * that the environment began to protect after the run was created.
 */
export async function readProtectedBranches(db: Queryable, executionId: string): Promise<readonly string[]> {
  const [row] = await db.query(readProtected, [executionId]);
  if (row === undefined) return ['*'];
  const rights = await readGatewayRights(db, executionId);
  // Only texts of the team loosen the default protection.
  const usual = rights?.team.kind === 'held' ? [] : ['HEAD'];
  return [...new Set([...usual, ...[row.protected_branches, row.present].flatMap((patterns) => patterns ?? ['HEAD'])])];
}

/** Returns the repositories that the run of an execution may reach: those of the run's environment. */
export async function readRepositories(db: Queryable, executionId: string): Promise<readonly Repository[]> {
  const [row] = await db.query(readOfExecution, [executionId]);
  return row?.repositories ?? [];
}
