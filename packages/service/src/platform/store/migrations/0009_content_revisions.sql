-- Revisions of the contents that the service hands to runs, each with its author, and the revisions that people have accepted
-- (docs/decisions/rights.md). The triggers that write them are beside the tables of the contents.

CREATE TABLE content_revisions (
  -- definition: agent_defaults, agents and skills of a factory.
  kind text NOT NULL
    CHECK (kind IN ('environment', 'agent_identity', 'schedule', 'automation', 'definition', 'mcp_server', 'worker_pool')),
  -- Id of the content; of a definition, the UID of the factory.
  uid text NOT NULL,
  -- 1, 2, … of the content.
  revision integer NOT NULL,
  team_id uuid NOT NULL REFERENCES teams ON DELETE CASCADE,
  -- NULL: not known.
  author_kind text CHECK (author_kind IN ('user', 'service_account')),
  author_uid text,
  content jsonb NOT NULL,
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  -- When the next revision was written, or the content was deleted; NULL: this is the present revision.
  superseded_at timestamptz,
  PRIMARY KEY (kind, uid, revision)
);
CREATE INDEX content_revisions_superseded ON content_revisions (superseded_at) WHERE superseded_at IS NOT NULL;
CREATE INDEX content_revisions_team ON content_revisions (team_id, kind, uid) WHERE superseded_at IS NULL;

-- The latest revision of each content that a person has accepted without writing it.
CREATE TABLE acceptances (
  user_uid text NOT NULL REFERENCES users (uid) ON DELETE CASCADE,
  kind text NOT NULL,
  uid text NOT NULL,
  revision integer NOT NULL,
  accepted_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  PRIMARY KEY (user_uid, kind, uid),
  FOREIGN KEY (kind, uid, revision) REFERENCES content_revisions ON DELETE CASCADE
);
CREATE INDEX acceptances_revision ON acceptances (kind, uid, revision);

-- Writes a revision if the content differs from the present one, and returns the number of the present one. Of the earlier revisions it
-- keeps the last hundred, up to 4 MB as stored but at least five, and all revisions that a person has accepted or a run in progress
-- executes.
CREATE FUNCTION write_revision(kind_of text, uid_of text, team uuid, author_kind_of text, author_uid_of text, content_of jsonb)
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

-- Returns whether a person has accepted the revision, or a run that has not ended executes it.
CREATE FUNCTION is_revision_needed(c content_revisions) RETURNS boolean LANGUAGE sql STABLE AS $$
  SELECT EXISTS (SELECT FROM acceptances a WHERE a.kind = c.kind AND a.uid = c.uid AND a.revision = c.revision)
    OR EXISTS (SELECT FROM runs r WHERE r.state IN ('QUEUED', 'PENDING', 'CLAIMED', 'INPROGRESS', 'BLOCKED')
      AND r.contents @> jsonb_build_array(jsonb_build_object('kind', c.kind, 'uid', c.uid, 'revision', c.revision)))
$$;

-- Ends the revisions of deleted contents that have a `uid`, in one statement. The argument is the kind.
CREATE FUNCTION end_revisions() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  UPDATE content_revisions c SET superseded_at = clock_timestamp()
    FROM gone WHERE c.kind = TG_ARGV[0] AND c.uid = gone.uid AND c.superseded_at IS NULL;
  RETURN NULL;
END $$;
