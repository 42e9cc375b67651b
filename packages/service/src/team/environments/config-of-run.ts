/**
 * SQL: the configuration of an environment in the revision that a run executes; NULL: this revision is gone. A run that is older than
 * revisions has the present one. `environment` and `run` are names of rows of `environments` and `runs`.
 */
export const configOfRun = (environment: string, run: string): string => `(
  CASE WHEN ${run}.environment_revision IS NULL THEN ${environment}.config ELSE (
    SELECT c.content FROM content_revisions c
    WHERE c.kind = 'environment' AND c.uid = ${environment}.uid AND c.revision = ${run}.environment_revision) END)`;
