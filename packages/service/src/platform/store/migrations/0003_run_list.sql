-- Indexes with which GET /agent/runs finds 50 of a million runs without reading the others (docs/decisions/run-list.md).

-- Sort orders without a filter.
CREATE INDEX runs_updated ON runs (team_id, updated_at, id);
-- GET /agent/runs/counts counts the runs of a time from this index alone, with `state` and `parent_run_id`.
CREATE INDEX runs_created ON runs (team_id, created_at, id) INCLUDE (state, parent_run_id);
CREATE INDEX runs_title ON runs (team_id, title COLLATE "C", id);
CREATE INDEX runs_skill ON runs (team_id, skill_spec COLLATE "C", id);

-- One for each filter by one value: the runs with that value, in the default order.
CREATE INDEX runs_state ON runs (team_id, state, updated_at, id);
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
CREATE INDEX runs_by_error ON runs (team_id, error_code COLLATE "C", updated_at, id) WHERE error_code IS NOT NULL;

-- For pairs of filters that match many runs each, but may match few runs or none together.
-- The runs of a state and a source, in the default order.
CREATE INDEX runs_by_state_and_source ON runs (team_id, state, source COLLATE "C", updated_at, id);
-- The runs without an environment, in the order of their skills. Runs without a skill come last in this order, and are in runs_skill.
CREATE INDEX runs_without_environment_by_skill ON runs (team_id, skill_spec COLLATE "C", id)
  WHERE environment_id IS NULL AND skill_spec IS NOT NULL;

-- For the filter task_status: runs at work that an agent started.
CREATE INDEX runs_working_below ON runs (team_id)
  WHERE ancestor_ids <> '{}' AND state IN ('QUEUED', 'PENDING', 'CLAIMED', 'INPROGRESS');

-- Returns the class of the time between a run's creation and its last change. A list of runs that were created before a
-- given time, latest change first, looks in each class near that time and skips all runs that were created later.
CREATE FUNCTION run_span(created_at timestamptz, updated_at timestamptz) RETURNS integer
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
  RETURN CASE
    WHEN updated_at - created_at < interval '5 minutes' THEN 0
    WHEN updated_at - created_at < interval '1 hour' THEN 1
    WHEN updated_at - created_at < interval '12 hours' THEN 2
    WHEN updated_at - created_at < interval '7 days' THEN 3
    ELSE 4 END;
CREATE INDEX runs_by_span ON runs (team_id, run_span(created_at, updated_at), updated_at, id) INCLUDE (created_at);

-- Returns the hour of a run's last change. run_facets and run_search keep it, so that the runs that changed last are found
-- first. Whole hours, so that a run that changes every second does not write to these tables every second.
CREATE FUNCTION run_hour(updated_at timestamptz) RETURNS timestamptz
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
  RETURN date_bin('1 hour', updated_at, TIMESTAMPTZ '2000-01-01 00:00:00Z');

-- Values of filters of which a run has many: `metadata:KEY=VALUE`, `ancestor:RUN_ID`, `artifact:TYPE`, and `factory` for runs of agents
-- of factories. Only triggers write it: index_new_runs, move_run_hour (0004_run_search.sql) and index_run_artifacts (0007_files.sql).
-- No foreign key to runs, for the same reason as in executions.
CREATE TABLE run_facets (
  run_id uuid NOT NULL,
  facet text COLLATE "C" NOT NULL,
  team_id uuid NOT NULL,
  -- run_hour of the run.
  updated_hour timestamptz NOT NULL,
  PRIMARY KEY (run_id, facet)
);
CREATE INDEX run_facets_list ON run_facets (team_id, facet, updated_hour, run_id);

-- Adds the metadata and ancestors of new runs to run_facets, and the facet `factory`. The client that creates a run may set any metadata,
-- but not its contents, so the contents show whether an agent of a factory executes the run.
CREATE FUNCTION index_new_runs() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF EXISTS (SELECT FROM new_runs WHERE metadata <> '{}' OR ancestor_ids <> '{}' OR contents <> '[]') THEN
    INSERT INTO run_facets (run_id, facet, team_id, updated_hour)
    SELECT r.id, 'metadata:' || m.key || '=' || m.value, r.team_id, run_hour(r.updated_at) FROM new_runs r, jsonb_each_text(r.metadata) m
    UNION ALL
    SELECT r.id, 'ancestor:' || a, r.team_id, run_hour(r.updated_at) FROM new_runs r, unnest(r.ancestor_ids) a
    UNION ALL
    SELECT r.id, 'factory', r.team_id, run_hour(r.updated_at) FROM new_runs r WHERE r.contents @> '[{"kind": "definition"}]';
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER index_new_runs AFTER INSERT ON runs REFERENCING NEW TABLE AS new_runs
  FOR EACH STATEMENT EXECUTE FUNCTION index_new_runs();
