-- A create writes less.

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
