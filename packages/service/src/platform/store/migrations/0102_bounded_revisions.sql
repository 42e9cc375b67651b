-- Earlier revisions of one content are bounded in bytes too, and a delete of many contents ends their revisions in one statement.

-- Writes a revision if the content differs from the present one, and returns the number of the present one. Of the earlier ones, the last
-- hundred are kept, up to 4 MB as stored but at least five, and besides them those that somebody has accepted or a run in progress executes.
CREATE OR REPLACE FUNCTION write_revision(kind_of text, uid_of text, team uuid, author_kind_of text, author_uid_of text, content_of jsonb)
RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
  last content_revisions;
  number integer;
  earlier bigint;
  bytes bigint;
BEGIN
  SELECT * INTO last FROM content_revisions c WHERE c.kind = kind_of AND c.uid = uid_of ORDER BY c.revision DESC LIMIT 1;
  IF last.content = content_of AND last.superseded_at IS NULL THEN
    RETURN last.revision;
  END IF;
  number := coalesce(last.revision, 0) + 1;
  UPDATE content_revisions c SET superseded_at = clock_timestamp()
    WHERE c.kind = kind_of AND c.uid = uid_of AND c.revision = last.revision AND c.superseded_at IS NULL;
  INSERT INTO content_revisions (kind, uid, revision, team_id, author_kind, author_uid, content)
    VALUES (kind_of, uid_of, number, team, author_kind_of, author_uid_of, content_of);
  IF number <= 6 THEN
    RETURN number;
  END IF;
  -- A look at the revisions in need reads all runs in progress, so some more than a hundred may gather between two of them.
  SELECT count(*), sum(pg_column_size(c.content)) INTO earlier, bytes FROM content_revisions c
    WHERE c.kind = kind_of AND c.uid = uid_of AND c.revision < number;
  IF earlier >= 120 OR (earlier > 5 AND bytes > 8 * 1024 * 1024) THEN
    DELETE FROM content_revisions c USING (
      SELECT k.revision, row_number() OVER later AS rank, sum(pg_column_size(k.content)) OVER later AS bytes
      FROM content_revisions k WHERE k.kind = kind_of AND k.uid = uid_of AND k.revision < number
      WINDOW later AS (ORDER BY k.revision DESC)
    ) k
    WHERE c.kind = kind_of AND c.uid = uid_of AND c.revision = k.revision
      AND (k.rank > 100 OR (k.rank > 5 AND k.bytes > 4 * 1024 * 1024))
      AND NOT EXISTS (SELECT FROM acceptances a WHERE a.kind = kind_of AND a.uid = uid_of AND a.revision = c.revision)
      AND c.revision NOT IN (
        SELECT (e->>'revision')::integer FROM runs r CROSS JOIN jsonb_array_elements(r.contents) e
        WHERE r.state IN ('QUEUED', 'PENDING', 'CLAIMED', 'INPROGRESS', 'BLOCKED')
          AND e->>'kind' = kind_of AND e->>'uid' = uid_of AND e->>'revision' IS NOT NULL);
  END IF;
  RETURN number;
END $$;

-- Ends the revisions of contents that are deleted. The argument is the kind.
CREATE OR REPLACE FUNCTION end_revisions() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  UPDATE content_revisions c SET superseded_at = clock_timestamp()
    FROM gone WHERE c.kind = TG_ARGV[0] AND c.uid = gone.uid AND c.superseded_at IS NULL;
  RETURN NULL;
END $$;

CREATE FUNCTION end_schedule_revisions() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  UPDATE content_revisions c SET superseded_at = clock_timestamp()
    FROM gone WHERE c.kind = 'schedule' AND c.uid = gone.id::text AND c.superseded_at IS NULL;
  RETURN NULL;
END $$;

DROP TRIGGER end_environment_revisions ON environments;
DROP TRIGGER end_agent_identity_revisions ON agent_identities;
DROP TRIGGER end_schedule_revisions ON schedules;
DROP TRIGGER end_automation_revisions ON automations;
DROP TRIGGER end_definition_revisions ON factories;
CREATE TRIGGER end_environment_revisions AFTER DELETE ON environments REFERENCING OLD TABLE AS gone
  FOR EACH STATEMENT EXECUTE FUNCTION end_revisions('environment');
CREATE TRIGGER end_agent_identity_revisions AFTER DELETE ON agent_identities REFERENCING OLD TABLE AS gone
  FOR EACH STATEMENT EXECUTE FUNCTION end_revisions('agent_identity');
CREATE TRIGGER end_schedule_revisions AFTER DELETE ON schedules REFERENCING OLD TABLE AS gone
  FOR EACH STATEMENT EXECUTE FUNCTION end_schedule_revisions();
CREATE TRIGGER end_automation_revisions AFTER DELETE ON automations REFERENCING OLD TABLE AS gone
  FOR EACH STATEMENT EXECUTE FUNCTION end_revisions('automation');
CREATE TRIGGER end_definition_revisions AFTER DELETE ON factories REFERENCING OLD TABLE AS gone
  FOR EACH STATEMENT EXECUTE FUNCTION end_revisions('definition');
