import type { GithubTools } from '@runyard/contract/environments/github-tools';
import type { Queryable } from '../../platform/store/database/database.ts';
import { defineStatement, json, nullable } from '../../platform/store/database/statement.ts';
import { configOfRun } from '../../team/environments/config-of-run.ts';
import { mayUse } from '../../team/environments/may-use.ts';

const readTools = defineStatement({
  name: 'read_github_tools_of_run',
  text: `
    SELECT ${configOfRun('env', 'r')}->'github_tools' AS tools
    FROM runs r JOIN run_requests q ON q.run_id = r.id JOIN environments env ON env.uid = r.environment_id AND ${mayUse('env', 'r')}
    WHERE r.id = $1`,
  row: { tools: nullable(json<GithubTools>()) },
});

/** Returns how often the run may use each tool that writes on GitHub. Its environment says it, in the revision that the run executes. */
export const readGithubTools = async (db: Queryable, runId: string): Promise<GithubTools> =>
  (await db.query(readTools, [runId]))[0]?.tools ?? {};
