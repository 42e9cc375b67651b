import { usualProtectedBranches } from '@runyard/contract/environments/protected-branches';
import type { EnvironmentRepository, Repository } from '@runyard/contract/environments/repositories';
import type { Queryable } from '../../../platform/store/database/database.ts';
import { defineStatement, json, nullable } from '../../../platform/store/database/statement.ts';
import { configOfRun } from '../../../team/environments/config-of-run.ts';
import { mayUse } from '../../../team/environments/may-use.ts';
import { readGatewayRights } from '../../executions/run-tokens/present-rights.ts';

const readOfExecution = defineStatement({
  name: 'read_repositories_of_execution',
  text: `
    SELECT ${configOfRun('env', 'r')}->'github_repos' AS repositories
    FROM executions e JOIN runs r ON r.id = e.run_id JOIN run_requests q ON q.run_id = r.id
    JOIN environments env ON env.uid = r.environment_id AND ${mayUse('env', 'r')}
    WHERE e.id = $1`,
  row: { repositories: nullable(json<Repository[]>()) },
});

const readProtected = defineStatement({
  name: 'read_protected_branches_of_execution',
  text: `
    SELECT ${configOfRun('env', 'r')}->'protected_branches' AS protected_branches, env.config->'protected_branches' AS present,
      ${configOfRun('env', 'r')}->'github_repos' AS repositories, env.config->'github_repos' AS present_repositories
    FROM executions e JOIN runs r ON r.id = e.run_id JOIN run_requests q ON q.run_id = r.id
    JOIN environments env ON env.uid = r.environment_id AND ${mayUse('env', 'r')}
    WHERE e.id = $1`,
  row: {
    protected_branches: nullable(json<string[]>()),
    present: nullable(json<string[]>()),
    repositories: nullable(json<EnvironmentRepository[]>()),
    present_repositories: nullable(json<EnvironmentRepository[]>()),
  },
});

/**
 * Returns the patterns for the branches to which the run of an execution cannot push; `HEAD` is the default branch. This includes branches
 * that the environment began to protect after the run was created. An environment that lists no branches protects the default branch and
 * the refs of its repositories, because the setup of later runs executes their files.
 */
export async function readProtectedBranches(db: Queryable, executionId: string): Promise<readonly string[]> {
  const [row] = await db.query(readProtected, [executionId]);
  if (row === undefined) return ['*'];
  const rights = await readGatewayRights(db, executionId);
  // Only texts of the team loosen the default protection.
  const usual = usualProtectedBranches(row.repositories ?? []);
  const presentUsual = usualProtectedBranches(row.present_repositories ?? []);
  const least = rights?.team.kind === 'held' ? [] : [...usual, ...presentUsual];
  return [...new Set([...least, ...(row.protected_branches ?? usual), ...(row.present ?? presentUsual)])];
}

/** Returns the repositories that the run of an execution may reach: those of the run's environment. */
export async function readRepositories(db: Queryable, executionId: string): Promise<readonly Repository[]> {
  const [row] = await db.query(readOfExecution, [executionId]);
  return row?.repositories ?? [];
}
