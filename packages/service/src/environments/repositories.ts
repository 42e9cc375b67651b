import type { Repository } from '@runyard/contract/environments';
import type { Queryable } from '../store/database/database.ts';
import { defineStatement, json, nullable } from '../store/database/statement.ts';
import { mayUse } from './may-use.ts';

const readOfExecution = defineStatement({
  name: 'read_repositories_of_execution',
  text: `
    SELECT env.config->'github_repos' AS repositories
    FROM executions e JOIN runs r ON r.id = e.run_id
    JOIN environments env ON env.uid = r.environment_id AND ${mayUse('env', 'r')}
    WHERE e.id = $1`,
  row: { repositories: nullable(json<Repository[]>()) },
});

/** Returns the repositories that the run of an execution may reach: the repositories of its environment. */
export async function readRepositories(db: Queryable, executionId: string): Promise<readonly Repository[]> {
  const [row] = await db.query(readOfExecution, [executionId]);
  return row?.repositories ?? [];
}
