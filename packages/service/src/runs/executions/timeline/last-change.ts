/**
 * SQL: the new `updated_at` of a run that gets events. Events within a second of the last change do not move it: most indexes of `runs` contain
 * it, so each move writes some twenty index entries. Statements that change a field of the run set `updated_at` themselves.
 */
export const lastChange =
  "CASE WHEN updated_at > clock_timestamp() - interval '1 second' THEN updated_at ELSE clock_timestamp() END";
