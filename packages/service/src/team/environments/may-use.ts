/**
 * SQL: selects the ids of people of other teams who may use the environment with this uid. They are guests by invitation, and people who
 * opened the environment's link.
 */
const admitted = (uid: string): string => `(
  SELECT g.user_id FROM environment_guests g WHERE g.environment_uid = ${uid}
  UNION ALL SELECT v.user_id FROM environment_visitors v WHERE v.environment_uid = ${uid})`;

/**
 * SQL: the run may use the environment, because the environment belongs to the run's team, or because the executor of the run is a guest of
 * it. `environment` and `run` are the SQL names of rows of `environments` and `runs`.
 */
export const mayUse = (environment: string, run: string): string => `(${environment}.team_id = ${run}.team_id
  OR (${run}.executor_kind = 'user' AND EXISTS (SELECT FROM users u WHERE u.uid = ${run}.executor_uid
    AND u.id IN ${admitted(`${environment}.uid`)})))`;

/** SQL: selects the uids of the environments that the person with the uid `person` may use as a guest. */
export const guestOf = (person: string): string => `
  SELECT g.environment_uid FROM environment_guests g JOIN users u ON u.id = g.user_id WHERE u.uid = ${person}
  UNION ALL SELECT v.environment_uid FROM environment_visitors v JOIN users u ON u.id = v.user_id WHERE u.uid = ${person}`;
