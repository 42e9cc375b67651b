-- What GET /agent/runs needs to find 50 of a million runs without reading the others (docs/decisions/run-list.md).

-- For the indexes of runs that are there already.
SET LOCAL maintenance_work_mem = '256MB';

ALTER TABLE teams ADD COLUMN metadata_filters_enabled boolean NOT NULL DEFAULT true;

-- One for each filter by one value: its runs in the default order. "C": compared by bytes, the same on every server.
CREATE INDEX runs_by_name ON runs (team_id, name COLLATE "C", updated_at, id) WHERE name IS NOT NULL;
CREATE INDEX runs_by_model ON runs (team_id, model_id COLLATE "C", updated_at, id);
CREATE INDEX runs_by_creator ON runs (team_id, creator_uid COLLATE "C", updated_at, id);
CREATE INDEX runs_by_executor ON runs (team_id, executor_uid COLLATE "C", updated_at, id);
CREATE INDEX runs_by_source ON runs (team_id, source COLLATE "C", updated_at, id);
CREATE INDEX runs_by_location ON runs (team_id, execution_location COLLATE "C", updated_at, id);
CREATE INDEX runs_by_environment ON runs (team_id, environment_id COLLATE "C", updated_at, id) WHERE environment_id IS NOT NULL;
CREATE INDEX runs_without_environment ON runs (team_id, updated_at, id) WHERE environment_id IS NULL;
CREATE INDEX runs_by_skill ON runs (team_id, skill_spec COLLATE "C", updated_at, id) WHERE skill_spec IS NOT NULL;
CREATE INDEX runs_by_schedule ON runs (team_id, schedule_id, updated_at, id) WHERE schedule_id IS NOT NULL;

-- How long after its creation a run changed last, in classes: runs created before a time, latest change first, are
-- found in each class near that time, instead of behind everything that was created since.
CREATE FUNCTION run_span(created_at timestamptz, updated_at timestamptz) RETURNS integer
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
  RETURN CASE
    WHEN updated_at - created_at < interval '5 minutes' THEN 0
    WHEN updated_at - created_at < interval '1 hour' THEN 1
    WHEN updated_at - created_at < interval '12 hours' THEN 2
    WHEN updated_at - created_at < interval '7 days' THEN 3
    ELSE 4 END;
CREATE INDEX runs_by_span ON runs (team_id, run_span(created_at, updated_at), updated_at, id) INCLUDE (created_at);

-- The hour of a run's last change. It is kept beside what is looked up, so that the latest are found first; by the hour,
-- so that a run that changes every second does not write there every second.
CREATE FUNCTION run_hour(updated_at timestamptz) RETURNS timestamptz
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
  RETURN date_bin('1 hour', updated_at, TIMESTAMPTZ '2000-01-01 00:00:00Z');

-- Filters of which a run has many values: `metadata:KEY=VALUE`, `ancestor:RUN_ID`, `artifact:TYPE`.
CREATE TABLE run_facets (
  run_id uuid NOT NULL REFERENCES runs ON DELETE CASCADE,
  facet text COLLATE "C" NOT NULL,
  team_id uuid NOT NULL,
  updated_hour timestamptz NOT NULL,
  PRIMARY KEY (run_id, facet)
);

INSERT INTO run_facets (run_id, facet, team_id, updated_hour)
SELECT r.id, 'metadata:' || m.key || '=' || m.value, r.team_id, run_hour(r.updated_at) FROM runs r, jsonb_each_text(r.metadata) m
UNION ALL
SELECT r.id, 'ancestor:' || a, r.team_id, run_hour(r.updated_at) FROM runs r, unnest(r.ancestor_ids) a
UNION
SELECT r.id, 'artifact:' || a.artifact_type, r.team_id, run_hour(r.updated_at)
FROM artifacts a JOIN runs r ON r.id = a.run_id WHERE a.is_ready;

CREATE INDEX run_facets_list ON run_facets (team_id, facet, updated_hour, run_id);

CREATE FUNCTION index_new_runs() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF EXISTS (SELECT FROM new_runs WHERE metadata <> '{}' OR ancestor_ids <> '{}') THEN
    INSERT INTO run_facets (run_id, facet, team_id, updated_hour)
    SELECT r.id, 'metadata:' || m.key || '=' || m.value, r.team_id, run_hour(r.updated_at) FROM new_runs r, jsonb_each_text(r.metadata) m
    UNION ALL
    SELECT r.id, 'ancestor:' || a, r.team_id, run_hour(r.updated_at) FROM new_runs r, unnest(r.ancestor_ids) a;
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER index_new_runs AFTER INSERT ON runs REFERENCING NEW TABLE AS new_runs
  FOR EACH STATEMENT EXECUTE FUNCTION index_new_runs();

CREATE FUNCTION move_run_hour() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  UPDATE run_facets SET updated_hour = run_hour(NEW.updated_at) WHERE run_id = NEW.id;
  RETURN NULL;
END $$;
CREATE TRIGGER move_run_hour AFTER UPDATE ON runs
  FOR EACH ROW WHEN (run_hour(OLD.updated_at) <> run_hour(NEW.updated_at)) EXECUTE FUNCTION move_run_hour();

-- The run's row is locked first: the hour does not change meanwhile, and of artifacts that come and go at once none is overlooked.
CREATE FUNCTION index_run_artifacts() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  run runs;
BEGIN
  SELECT * INTO run FROM runs WHERE id = coalesce(NEW.run_id, OLD.run_id) FOR NO KEY UPDATE;
  IF NOT FOUND THEN
    RETURN NULL;
  END IF;
  IF TG_OP <> 'DELETE' AND NEW.is_ready THEN
    INSERT INTO run_facets (run_id, facet, team_id, updated_hour)
    VALUES (run.id, 'artifact:' || NEW.artifact_type, run.team_id, run_hour(run.updated_at)) ON CONFLICT DO NOTHING;
  ELSIF TG_OP = 'DELETE' AND NOT EXISTS (
    SELECT FROM artifacts WHERE run_id = OLD.run_id AND artifact_type = OLD.artifact_type AND is_ready) THEN
    DELETE FROM run_facets WHERE run_id = OLD.run_id AND facet = 'artifact:' || OLD.artifact_type;
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER index_run_artifacts AFTER INSERT OR DELETE OR UPDATE OF is_ready ON artifacts
  FOR EACH ROW EXECUTE FUNCTION index_run_artifacts();
