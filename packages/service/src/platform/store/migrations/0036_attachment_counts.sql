-- Counts the bytes of all attachments of a statement at once: a batch of deliveries writes the payload of each as a file of its run.
CREATE FUNCTION count_new_attachments() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF EXISTS (SELECT FROM new_attachments) THEN
    INSERT INTO storage_changes (team_id, bytes)
    SELECT r.team_id, sum(a.size_bytes) FROM new_attachments a JOIN runs r ON r.id = a.run_id GROUP BY r.team_id
    HAVING sum(a.size_bytes) <> 0;
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER count_new_attachments AFTER INSERT ON attachments REFERENCING NEW TABLE AS new_attachments
  FOR EACH STATEMENT EXECUTE FUNCTION count_new_attachments();
CREATE OR REPLACE TRIGGER count_attachment AFTER DELETE ON attachments FOR EACH ROW EXECUTE FUNCTION count_attachment();
