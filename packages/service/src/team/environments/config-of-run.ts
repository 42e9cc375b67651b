/**
 * SQL: the configuration of an environment in the revision that a run executes; NULL if this revision was deleted. A run from before
 * revisions existed has no recorded revision. It executes the first revision, because the decision about its rights does not cover later
 * revisions. `environment` and `run` are the SQL names of rows of `environments` and `runs`.
 */
export const configOfRun = (environment: string, run: string): string => `(
  SELECT c.content FROM content_revisions c
  WHERE c.kind = 'environment' AND c.uid = ${environment}.uid AND c.revision = coalesce(${run}.environment_revision, 1))`;
