-- Revisions of what the service hands to runs, each with its author; and which of them people have accepted (docs/decisions/rights.md).

CREATE TABLE content_revisions (
  -- definition: agent_defaults, agents and skills of a factory.
  kind text NOT NULL CHECK (kind IN ('environment', 'agent_identity', 'schedule', 'automation', 'definition')),
  -- Of the environment, agent identity, schedule, automation or factory.
  uid text NOT NULL,
  -- 1, 2, … of the content.
  revision integer NOT NULL,
  team_id uuid NOT NULL REFERENCES teams ON DELETE CASCADE,
  -- NULL: written before the service recorded authors.
  author_kind text CHECK (author_kind IN ('user', 'service_account')),
  author_uid text,
  content jsonb NOT NULL,
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  -- When the next revision was written, or the content was deleted; NULL: it is the present one.
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

-- The revision of its environment that the run executes; NULL: it has no environment, or is older than revisions.
ALTER TABLE runs ADD COLUMN environment_revision integer;
-- The contents that the run executes: [{kind, uid?, revision?, name?, author: {kind, uid} | null, accepted}].
ALTER TABLE runs ADD COLUMN contents jsonb NOT NULL DEFAULT '[]';
-- The rights of the run, in the form of RunRights in team/access/contents/run-rights.ts; NULL: the run is older than rights.
ALTER TABLE runs ADD COLUMN rights jsonb;

-- The revision of the row's content. A trigger sets it.
ALTER TABLE environments ADD COLUMN revision integer NOT NULL DEFAULT 0;
ALTER TABLE agent_identities ADD COLUMN revision integer NOT NULL DEFAULT 0;
ALTER TABLE agent_identities ADD COLUMN editor_kind text CHECK (editor_kind IN ('user', 'service_account'));
ALTER TABLE agent_identities ADD COLUMN editor_uid text;
-- 0: a schedule of an automation, whose content is the automation's.
ALTER TABLE schedules ADD COLUMN revision integer NOT NULL DEFAULT 0;
ALTER TABLE automations ADD COLUMN revision integer NOT NULL DEFAULT 0;
-- Of its definition: agent_defaults, agents and skills.
ALTER TABLE factories ADD COLUMN revision integer NOT NULL DEFAULT 0;

-- Writes a revision if the content differs from the present one, and returns the number of the present one. Of a content that changes
-- often, only a hundred revisions are kept besides those that somebody has accepted or a run in progress executes.
CREATE FUNCTION write_revision(kind_of text, uid_of text, team uuid, author_kind_of text, author_uid_of text, content_of jsonb)
RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
  last content_revisions;
  number integer;
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
  DELETE FROM content_revisions c WHERE c.kind = kind_of AND c.uid = uid_of AND c.revision < number - 100 AND NOT is_revision_needed(c);
  RETURN number;
END $$;

-- Whether somebody has accepted the revision, or a run that has not ended executes it.
CREATE FUNCTION is_revision_needed(c content_revisions) RETURNS boolean LANGUAGE sql STABLE AS $$
  SELECT EXISTS (SELECT FROM acceptances a WHERE a.kind = c.kind AND a.uid = c.uid AND a.revision = c.revision)
    OR EXISTS (SELECT FROM runs r WHERE r.state IN ('QUEUED', 'PENDING', 'CLAIMED', 'INPROGRESS', 'BLOCKED')
      AND r.contents @> jsonb_build_array(jsonb_build_object('kind', c.kind, 'uid', c.uid, 'revision', c.revision)))
$$;

-- Ends the revisions of a content that is deleted. The argument is the kind.
CREATE FUNCTION end_revisions() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  UPDATE content_revisions c SET superseded_at = clock_timestamp()
    WHERE c.kind = TG_ARGV[0] AND c.uid = coalesce(to_jsonb(OLD)->>'uid', to_jsonb(OLD)->>'id') AND c.superseded_at IS NULL;
  RETURN NULL;
END $$;

CREATE FUNCTION revise_environment() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  NEW.revision := write_revision('environment', NEW.uid, NEW.team_id, NEW.last_editor_kind, NEW.last_editor_uid, NEW.config);
  RETURN NEW;
END $$;

CREATE FUNCTION revise_agent_identity() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  NEW.revision := write_revision('agent_identity', NEW.uid, NEW.team_id, NEW.editor_kind, NEW.editor_uid, jsonb_build_object(
    'name', NEW.name, 'description', NEW.description, 'base_model', NEW.base_model, 'environment_id', NEW.environment_id,
    'skills', NEW.skills, 'secrets', NEW.secrets, 'on_behalf_of_enabled', NEW.on_behalf_of_enabled));
  RETURN NEW;
END $$;

CREATE FUNCTION revise_schedule() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  NEW.revision := write_revision('schedule', NEW.id::text, NEW.team_id, NEW.editor_kind, NEW.editor_uid, jsonb_build_object(
    'prompt', NEW.prompt, 'agent_config', NEW.agent_config, 'agent_uid', NEW.agent_uid, 'mode', NEW.mode, 'metadata', NEW.metadata,
    -- The person of a personal schedule.
    'owner', NEW.user_uid));
  RETURN NEW;
END $$;

CREATE FUNCTION revise_automation() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  NEW.revision := write_revision('automation', NEW.uid, NEW.team_id, NEW.editor_kind, NEW.editor_uid, jsonb_build_object(
    'name', NEW.name, 'prompt', NEW.prompt, 'agent', NEW.agent, 'triggers', NEW.triggers, 'config', NEW.config));
  RETURN NEW;
END $$;

-- Writes the revision of a factory's definition, and returns its number. Called by the statements that change the definition.
CREATE FUNCTION revise_definition(f factories, author_kind text, author_uid text) RETURNS integer LANGUAGE sql AS $$
  SELECT write_revision('definition', f.uid, f.team_id, author_kind, author_uid, jsonb_build_object(
    'agent_defaults', f.agent_defaults,
    'agents', (SELECT coalesce(jsonb_agg(jsonb_build_object('name', a.name, 'prompt', a.prompt, 'config', a.config) ORDER BY a.name), '[]')
      FROM factory_agents a WHERE a.factory_uid = f.uid),
    'skills', (SELECT coalesce(jsonb_agg(s), '[]') FROM factory_definitions d, jsonb_array_elements(d.files) s
      WHERE d.factory_uid = f.uid AND s->>'path' ~ '^(agents/[^/]+/)?skills/')))
$$;

-- Returns the author of content that was written before authors were recorded: the last one in the audit log, else an owner of the team.
CREATE FUNCTION pg_temp.known_author(team uuid, type text, uid_of text, OUT kind text, OUT uid text) LANGUAGE sql AS $$
  SELECT actor_kind, actor_uid FROM (
    SELECT e.position, e.actor_kind, e.actor_uid FROM audit_entries e
      WHERE e.team_id = team AND e.subject_type = type AND e.subject_uid = uid_of AND e.action NOT LIKE '%.delete'
    UNION ALL SELECT 0, 'user', u.uid FROM team_members m JOIN users u ON u.id = m.user_id WHERE m.team_id = team AND m.role = 'owner'
  ) known ORDER BY position DESC, actor_uid LIMIT 1
$$;

UPDATE agent_identities i SET (editor_kind, editor_uid) = (SELECT kind, uid FROM pg_temp.known_author(i.team_id, 'agent_identity', i.uid));
UPDATE environments e SET (last_editor_kind, last_editor_uid) = (SELECT kind, uid FROM pg_temp.known_author(e.team_id, 'environment', e.uid))
  WHERE last_editor_uid IS NULL;

CREATE TRIGGER revise_environment BEFORE INSERT OR UPDATE OF config ON environments FOR EACH ROW EXECUTE FUNCTION revise_environment();
CREATE TRIGGER revise_agent_identity BEFORE INSERT OR UPDATE ON agent_identities FOR EACH ROW EXECUTE FUNCTION revise_agent_identity();
CREATE TRIGGER revise_schedule BEFORE INSERT OR UPDATE OF prompt, agent_config, agent_uid, mode, metadata ON schedules
  FOR EACH ROW WHEN (NEW.automation_uid IS NULL) EXECUTE FUNCTION revise_schedule();
CREATE TRIGGER revise_automation BEFORE INSERT OR UPDATE OF name, prompt, agent, triggers, config ON automations
  FOR EACH ROW EXECUTE FUNCTION revise_automation();

-- Existing content gets its first revision with its present author.
UPDATE environments SET config = config;
UPDATE agent_identities SET name = name;
UPDATE schedules SET prompt = prompt;
UPDATE automations SET name = name;
UPDATE factories f SET revision = (
  SELECT revise_definition(f, CASE WHEN d.applied_by_uid IS NULL THEN a.kind ELSE 'user' END, coalesce(d.applied_by_uid, a.uid))
  FROM pg_temp.known_author(f.team_id, 'factory', f.uid) a LEFT JOIN factory_definitions d ON d.factory_uid = f.uid);

CREATE TRIGGER end_environment_revisions AFTER DELETE ON environments FOR EACH ROW EXECUTE FUNCTION end_revisions('environment');
CREATE TRIGGER end_agent_identity_revisions AFTER DELETE ON agent_identities FOR EACH ROW EXECUTE FUNCTION end_revisions('agent_identity');
CREATE TRIGGER end_schedule_revisions AFTER DELETE ON schedules FOR EACH ROW EXECUTE FUNCTION end_revisions('schedule');
CREATE TRIGGER end_automation_revisions AFTER DELETE ON automations FOR EACH ROW EXECUTE FUNCTION end_revisions('automation');
CREATE TRIGGER end_definition_revisions AFTER DELETE ON factories FOR EACH ROW EXECUTE FUNCTION end_revisions('definition');
