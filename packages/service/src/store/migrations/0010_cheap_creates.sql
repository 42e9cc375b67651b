-- A create writes less: one row for all runs of a statement that wait for their words, and facets only where there are some.

-- Runs whose words are new, at most 100 in a row.
CREATE TABLE run_search_waiting (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  run_ids uuid[] NOT NULL
);
INSERT INTO run_search_waiting (run_ids)
SELECT array_agg(run_id ORDER BY run_id)
FROM (SELECT run_id, (row_number() OVER (ORDER BY run_id) - 1) / 100 AS part FROM run_search_queue) waiting
GROUP BY part ORDER BY part;
DROP TABLE run_search_queue;

CREATE OR REPLACE FUNCTION index_new_runs() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO run_search_waiting (run_ids)
  SELECT array_agg(id) FROM (SELECT id, (row_number() OVER () - 1) / 100 AS part FROM new_runs) waiting GROUP BY part;
  IF EXISTS (SELECT FROM new_runs WHERE metadata <> '{}' OR ancestor_ids <> '{}') THEN
    INSERT INTO run_facets (run_id, facet, team_id, updated_hour)
    SELECT r.id, 'metadata:' || m.key || '=' || m.value, r.team_id, run_hour(r.updated_at) FROM new_runs r, jsonb_each_text(r.metadata) m
    UNION ALL
    SELECT r.id, 'ancestor:' || a, r.team_id, run_hour(r.updated_at) FROM new_runs r, unnest(r.ancestor_ids) a;
  END IF;
  RETURN NULL;
END $$;

-- Seldom, so at once: whoever takes apart the old words at the same time does not write over these.
CREATE OR REPLACE FUNCTION index_run_words() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO run_search (run_id, team_id, updated_hour, heading, words)
  VALUES (NEW.id, NEW.team_id, run_hour(NEW.updated_at), run_heading(NEW.title, NEW.skill_spec),
    run_words(NEW.title, NEW.skill_spec, NEW.prompt))
  ON CONFLICT (run_id) DO UPDATE SET heading = excluded.heading, words = excluded.words;
  RETURN NULL;
END $$;

-- Both are written only by statements that insert, or lock, the row of their run: a foreign key would look it up once more
-- for each row. What goes with a run is deleted by this trigger.
ALTER TABLE executions DROP CONSTRAINT executions_run_id_fkey;
ALTER TABLE run_events DROP CONSTRAINT run_events_run_id_fkey;
CREATE FUNCTION delete_parts_of_runs() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  DELETE FROM run_events WHERE run_id IN (SELECT id FROM deleted_runs);
  DELETE FROM executions WHERE run_id IN (SELECT id FROM deleted_runs);
  RETURN NULL;
END $$;
CREATE TRIGGER delete_parts_of_runs AFTER DELETE ON runs REFERENCING OLD TABLE AS deleted_runs
  FOR EACH STATEMENT EXECUTE FUNCTION delete_parts_of_runs();
CREATE FUNCTION truncate_parts_of_runs() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  TRUNCATE run_events, executions CASCADE;
  RETURN NULL;
END $$;
CREATE TRIGGER truncate_parts_of_runs AFTER TRUNCATE ON runs FOR EACH STATEMENT EXECUTE FUNCTION truncate_parts_of_runs();
