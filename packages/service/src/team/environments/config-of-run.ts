/**
 * SQL: the configuration of an environment in the revision that a run executes; NULL: this revision is gone. A run that is older than
 * revisions has the first one, which the environment had when revisions began: no decision about its rights covers later revisions, so it
 * executes none of them. `environment` and `run` are names of rows of `environments` and `runs`.
 */
export const configOfRun = (environment: string, run: string): string => `(
  SELECT c.content FROM content_revisions c
  WHERE c.kind = 'environment' AND c.uid = ${environment}.uid AND c.revision = coalesce(${run}.environment_revision, 1))`;
