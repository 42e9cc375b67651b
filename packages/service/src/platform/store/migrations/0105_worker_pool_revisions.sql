-- A pool of self-hosted workers is content: its machines see the secrets of the runs that name it. Its author is its owner.
ALTER TABLE content_revisions DROP CONSTRAINT content_revisions_kind_check,
  ADD CONSTRAINT content_revisions_kind_check
    CHECK (kind IN ('environment', 'agent_identity', 'schedule', 'automation', 'definition', 'mcp_server', 'worker_pool'));

-- Each team has a pool of every name.
ALTER TABLE worker_pools ADD COLUMN uid text NOT NULL GENERATED ALWAYS AS (name || '@' || team_id::text) STORED;

CREATE FUNCTION revise_worker_pool() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM write_revision('worker_pool', NEW.uid, NEW.team_id, NEW.owner_kind, NEW.owner_uid, jsonb_build_object(
    'name', NEW.name, 'owner_kind', NEW.owner_kind, 'owner_uid', NEW.owner_uid));
  RETURN NULL;
END $$;
CREATE TRIGGER revise_worker_pool AFTER INSERT OR UPDATE OF owner_kind, owner_uid ON worker_pools
  FOR EACH ROW EXECUTE FUNCTION revise_worker_pool();
UPDATE worker_pools SET owner_uid = owner_uid;
-- Executions that were assigned before have the pool of their time.
UPDATE content_revisions c SET created_at = p.created_at FROM worker_pools p WHERE c.kind = 'worker_pool' AND c.uid = p.uid;

CREATE TRIGGER end_worker_pool_revisions AFTER DELETE ON worker_pools REFERENCING OLD TABLE AS gone
  FOR EACH STATEMENT EXECUTE FUNCTION end_revisions('worker_pool');
