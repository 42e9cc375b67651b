-- Whether the agent has ended a turn and has not begun the next one, so it gets the first waiting follow-up. While it is false, a waiting
-- follow-up stays in the service, where its author can change it. NULL: an execution of an earlier version, whose agent already has all
-- waiting follow-ups.
ALTER TABLE executions ADD COLUMN awaits_followup boolean;
ALTER TABLE executions ALTER COLUMN awaits_followup SET DEFAULT false;

-- Counts the bytes of a changed message too.
CREATE OR REPLACE FUNCTION count_followup() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP <> 'INSERT' THEN
    PERFORM change_storage_of_run(OLD.run_id, -octet_length(OLD.message));
  END IF;
  IF TG_OP <> 'DELETE' THEN
    PERFORM change_storage_of_run(NEW.run_id, octet_length(NEW.message));
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER count_changed_followup AFTER UPDATE OF message ON followups FOR EACH ROW EXECUTE FUNCTION count_followup();
