/** A pool of self-hosted workers as content of the runs that name it: its machines see what a run has. */

/** Returns the UID of a pool as content. The service's own pool has none. */
export const uidOfPool = (teamId: string, name: string): string => `${name}@${teamId}`;

/** Returns the name of the pool. Names have no `@`. */
export const nameOfPool = (uid: string): string => uid.slice(0, uid.indexOf('@'));

/**
 * SQL: the pool that has an execution, as a content of the run which the executor has not accepted; NULL: the run was created with this
 * revision of the pool, or its executor owns it. Nobody may own the name when a run is created, and a pool that is deleted may belong to
 * somebody else afterwards. What happens to the pool after the assignment does not count. `run` and `execution` are names of rows of `runs` and
 * `executions`.
 */
export const unexpectedPool = (run: string, execution: string): string => `(
  SELECT jsonb_build_object('kind', 'worker_pool', 'uid', p.uid, 'revision', p.revision,
    'author', jsonb_build_object('kind', p.author_kind, 'uid', p.author_uid), 'accepted', false)
  FROM (
    SELECT c.uid, c.revision, c.author_kind, c.author_uid FROM content_revisions c
    WHERE c.kind = 'worker_pool' AND c.uid = ${run}.worker_host || '@' || ${run}.team_id
      AND c.created_at <= coalesce(${execution}.assigned_at, clock_timestamp())
    ORDER BY c.revision DESC LIMIT 1
  ) p
  WHERE (p.author_kind, p.author_uid) IS DISTINCT FROM (${run}.executor_kind, ${run}.executor_uid)
    AND NOT ${run}.contents @> jsonb_build_array(jsonb_build_object('kind', 'worker_pool', 'uid', p.uid, 'revision', p.revision)))`;
