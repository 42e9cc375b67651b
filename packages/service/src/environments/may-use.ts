/**
 * SQL: whether a run may use an environment. It is one of the run's team, or the run executes as a person who is a guest of it.
 * `environment` and `run` are names of rows of `environments` and `runs`.
 */
export const mayUse = (environment: string, run: string): string => `(${environment}.team_id = ${run}.team_id
  OR (${run}.executor_kind = 'user' AND EXISTS (SELECT FROM environment_guests g JOIN users u ON u.id = g.user_id
    WHERE g.environment_uid = ${environment}.uid AND u.uid = ${run}.executor_uid)))`;

/** SQL: uids of the environments that the person with the uid `person` is a guest of. */
export const guestOf = (person: string): string =>
  `SELECT g.environment_uid FROM environment_guests g JOIN users u ON u.id = g.user_id WHERE u.uid = ${person}`;
