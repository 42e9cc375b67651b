/**
 * SQL: the configuration without its allowed hosts, tools of model providers and tools for GitHub, and with the default branch as a protected branch. So an
 * environment that somebody outside of the team wrote loosens no protection. Its limits stay, because without them a sandbox may use more.
 */
const protectedConfig = (content: string): string =>
  `jsonb_set(${content} - '{network,provider_tools,github_tools}'::text[], '{protected_branches}', coalesce(nullif(${content}->'protected_branches', 'null'), '[]') || '["HEAD"]')`;

/**
 * SQL: the configuration of an environment in the revision that a run executes; NULL if this revision was deleted. A run from before
 * revisions existed has no recorded revision. It executes the first revision, because the decision about its rights does not cover later
 * revisions. `environment`, `run` and `request`
 * are the SQL names of rows of `environments`, `runs` and `run_requests`.
 */
export const configOfRun = (environment: string, run: string, request = 'q'): string => `(
  SELECT CASE WHEN ${request}.rights->'team_credentials' = 'false' THEN ${protectedConfig('c.content')} ELSE c.content END FROM content_revisions c
  WHERE c.kind = 'environment' AND c.uid = ${environment}.uid AND c.revision = coalesce(${run}.environment_revision, 1))`;
