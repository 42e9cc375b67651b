-- Forgets that tables of a new installation were empty when an earlier migration analyzed them. PostgreSQL makes the plan of a statement once
-- for each connection. With these statistics the plan would read whole tables, also when they have grown, until the next ANALYZE.
-- PostgreSQL has this function since version 18.
DO $$
BEGIN
  IF to_regproc('pg_clear_relation_stats') IS NOT NULL AND NOT EXISTS (SELECT FROM runs) THEN
    PERFORM pg_clear_relation_stats(current_schema(), name)
    FROM unnest(ARRAY['runs', 'run_requests', 'executions', 'run_search']) name;
  END IF;
END $$;

-- Looks the team of each run up by the run's id. A join could be planned to read all runs, if the first creates came while there were few.
CREATE OR REPLACE FUNCTION count_new_runs() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO storage_changes (team_id, bytes)
  SELECT team_id, sum(bytes) FROM (
    SELECT (SELECT r.team_id FROM runs r WHERE r.id = q.run_id) AS team_id, bytes_of_request(q.prompt, q.config) AS bytes FROM new_requests q
  ) of_run GROUP BY team_id;
  RETURN NULL;
END $$;
