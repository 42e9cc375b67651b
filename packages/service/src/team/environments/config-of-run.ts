/**
 * SQL: the configuration of an environment in the revision that a run executes; NULL if this revision was deleted. A run without a recorded
 * revision has the first revision, because no decision about the run's rights covers later revisions. That revision dates from the
 * introduction of revisions. `environment` and `run` are names of rows of `environments` and `runs`.
 */
export const configOfRun = (environment: string, run: string): string => `(
  SELECT c.content FROM content_revisions c
  WHERE c.kind = 'environment' AND c.uid = ${environment}.uid AND c.revision = coalesce(${run}.environment_revision, 1))`;
