/** SQL: the worker's connection `c` takes runs of the pool. The hosted pool is ''; another one is the name of a team's own worker. */
export const servesPool = (c: string, pool: string, teamId: string): string =>
  `CASE WHEN ${pool} = '' THEN ${c}.team_id IS NULL ELSE ${c}.worker_id = ${pool} AND ${c}.team_id = ${teamId} END`;

/** SQL: the execution `e` is of the pool. Two teams may each have a worker of the same name. */
export const isOfPool = (e: string, pool: string, teamId: string): string =>
  `${e}.pool = ${pool} AND (${pool} = '' OR ${e}.team_id = ${teamId})`;
