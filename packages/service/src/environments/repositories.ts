import type { Repository } from '@runyard/contract/environments';
import type { Queryable, Statement } from '../store/database/database.ts';

const readOfExecution: Statement = {
  name: 'read_repositories_of_execution',
  text: `
    SELECT env.config->'github_repos' AS repositories
    FROM executions e JOIN runs r ON r.id = e.run_id
    JOIN environments env ON env.uid = r.environment_id AND env.team_id = r.team_id
    WHERE e.id = $1`,
};

/** Repositories that the run of an execution may reach: those of its environment. */
export async function readRepositories(db: Queryable, executionId: string): Promise<readonly Repository[]> {
  const [row] = await db.query<{ repositories: Repository[] | null }>(readOfExecution, [executionId]);
  return row?.repositories ?? [];
}
