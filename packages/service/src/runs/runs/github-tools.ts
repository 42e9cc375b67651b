import { GithubTools } from '@runyard/contract/environments/github-tools';
import { parseUntrusted } from '@runyard/contract/wire/parse-untrusted';
import type { Queryable } from '../../platform/store/database/database.ts';
import { boolean, defineStatement, json, nullable } from '../../platform/store/database/statement.ts';
import { configOfRun } from '../../team/environments/config-of-run.ts';
import { mayUse } from '../../team/environments/may-use.ts';

/** `lacks_rights`: the run may not use the credentials of the team, so an automation gives it no tools. */
const readTools = defineStatement({
  name: 'read_github_tools_of_run',
  text: `
    SELECT ${configOfRun('env', 'r')}->'github_tools' AS of_environment, c.content->'config'->'github_tools' AS of_automation,
      n.content IS NOT NULL AND c.uid IS NULL AS is_unknown, coalesce(q.rights->'team_credentials' = 'false', false) AS lacks_rights
    FROM runs r JOIN run_requests q ON q.run_id = r.id LEFT JOIN environments env ON env.uid = r.environment_id AND ${mayUse('env', 'r')}
      CROSS JOIN LATERAL (SELECT jsonb_path_query_first(q.contents, '$[*] ? (@.kind == "automation")') AS content) n
      LEFT JOIN content_revisions c ON c.kind = 'automation' AND c.uid = n.content->>'uid' AND c.revision = (n.content->>'revision')::integer
    WHERE r.id = $1`,
  row: {
    of_environment: nullable(json<GithubTools>()),
    of_automation: nullable(json<unknown>()),
    is_unknown: boolean,
    lacks_rights: boolean,
  },
});

/**
 * Returns how often the run may use each tool that writes on GitHub. The automation that started the run, or a run above it, says it if it
 * has such a list, and else the environment: each in the revision that the run executes. Without this revision, the run has no tools.
 */
export async function readGithubTools(db: Queryable, runId: string): Promise<GithubTools> {
  const [row] = await db.query(readTools, [runId]);
  if (!row || row.is_unknown) return {};
  if (row.of_automation === null) return row.of_environment ?? {};
  // An older service has stored this member without a check.
  return row.lacks_rights ? {} : (parseUntrusted(GithubTools, row.of_automation).data ?? {});
}
