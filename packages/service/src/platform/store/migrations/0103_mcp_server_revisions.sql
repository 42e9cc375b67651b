-- A stored MCP server with a command is content: the program runs in the sandbox, beside the secrets of the run.
ALTER TABLE content_revisions DROP CONSTRAINT content_revisions_kind_check,
  ADD CONSTRAINT content_revisions_kind_check
    CHECK (kind IN ('environment', 'agent_identity', 'schedule', 'automation', 'definition', 'mcp_server'));

ALTER TABLE mcp_servers
  ADD COLUMN editor_kind text CHECK (editor_kind IN ('user', 'service_account')),
  ADD COLUMN editor_uid text,
  -- How often people have replaced the values. Revisions have this number instead of the values, which are sealed.
  ADD COLUMN values_number integer NOT NULL DEFAULT 1,
  -- Of the command. A trigger sets it. 0: the server has an address.
  ADD COLUMN revision integer NOT NULL DEFAULT 0;

UPDATE mcp_servers s SET (editor_kind, editor_uid) = (
  SELECT actor_kind, actor_uid FROM (
    SELECT e.position, e.actor_kind, e.actor_uid FROM audit_entries e
      WHERE e.team_id = s.team_id AND e.subject_type = 'mcp_server' AND e.subject_uid = s.id::text AND e.action NOT LIKE '%.delete'
    UNION ALL SELECT 0, 'user', u.uid FROM team_members m JOIN users u ON u.id = m.user_id WHERE m.team_id = s.team_id AND m.role = 'owner'
  ) known ORDER BY position DESC, actor_uid LIMIT 1);

CREATE FUNCTION revise_mcp_server() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  NEW.revision := write_revision('mcp_server', NEW.id::text, NEW.team_id, NEW.editor_kind, NEW.editor_uid, jsonb_build_object(
    'name', NEW.name, 'command', NEW.command, 'args', NEW.args, 'env_names', NEW.value_names, 'env_number', NEW.values_number));
  RETURN NEW;
END $$;
CREATE TRIGGER revise_mcp_server BEFORE INSERT OR UPDATE OF command, args, value_names, values_number ON mcp_servers
  FOR EACH ROW WHEN (NEW.command IS NOT NULL) EXECUTE FUNCTION revise_mcp_server();
UPDATE mcp_servers SET command = command WHERE command IS NOT NULL;

CREATE FUNCTION end_mcp_server_revisions() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  UPDATE content_revisions c SET superseded_at = clock_timestamp()
    FROM gone WHERE c.kind = 'mcp_server' AND c.uid = gone.id::text AND c.superseded_at IS NULL;
  RETURN NULL;
END $$;
CREATE TRIGGER end_mcp_server_revisions AFTER DELETE ON mcp_servers REFERENCING OLD TABLE AS gone
  FOR EACH STATEMENT EXECUTE FUNCTION end_mcp_server_revisions();
