import { unexpectedPool } from '../../../team/access/worker-pools/pool-content.ts';

/**
 * SQL: the follow-up `f` is part of the first prompt or of the turn that an execution works on now, and neither the executor of its run nor
 * a run that follows only texts of the executor wrote it. Follow-ups that wait before the start become part of the first prompt; a later one is a turn of its own.
 * `run` and `execution` are names of rows of `runs` and `executions`.
 */
export const isOfTurnByOther = (run: string, execution: string): string => `(
  f.run_id = ${run}.id
  AND CASE WHEN f.created_by_kind = 'run' THEN f.has_other_authors
    ELSE (f.created_by_kind, f.created_by_uid) IS DISTINCT FROM (${run}.executor_kind, ${run}.executor_uid) END
  AND CASE WHEN f.execution_id IS NULL THEN ${execution}.started_at IS NULL
    ELSE f.execution_id = ${execution}.id AND f.taken_at >= coalesce((
      SELECT max(l.taken_at) FROM followups l
      WHERE l.run_id = ${run}.id AND l.execution_id = ${execution}.id AND l.taken_at > ${execution}.started_at), f.taken_at) END)`;

/** SQL: whether the run may use the personal credentials of its executor now: by its rights, by who wrote its present turn, and by whose pool has it. */
export const mayUsePersonalCredentials = (run: string, execution: string): string => `(
  coalesce((${run}.rights->>'personal_credentials')::boolean, true)
  AND NOT EXISTS (SELECT FROM followups f WHERE ${isOfTurnByOther(run, execution)})
  AND ${unexpectedPool(run, execution)} IS NULL)`;
