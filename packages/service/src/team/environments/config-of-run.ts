/**
 * SQL: the configuration of an environment in the revision that a run executes; NULL if this revision is gone. A run
 * without a recorded revision has the first revision, which the environment had when revisions began: no decision about
 * the run's rights covers later revisions. `environment` and `run` are names of rows of `environments` and `runs`.
 */
export const configOfRun = (environment: string, run: string): string => `(
  SELECT c.content FROM content_revisions c
  WHERE c.kind = 'environment' AND c.uid = ${environment}.uid AND c.revision = coalesce(${run}.environment_revision, 1))`;
