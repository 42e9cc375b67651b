-- The facet `factory` of runs that an agent of a factory executes, for the filter factory_only. Who creates a run may set any metadata,
-- but not its contents.
CREATE OR REPLACE FUNCTION index_new_runs() RETURNS trigger LANGUAGE plpgsql AS $$
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
INSERT INTO run_facets (run_id, facet, team_id, updated_hour)
SELECT id, 'factory', team_id, run_hour(updated_at) FROM runs WHERE contents @> '[{"kind": "definition"}]';

-- Runs at work that have runs above them, for the filter task_status.
CREATE INDEX runs_working_below ON runs (team_id)
  WHERE ancestor_ids <> '{}' AND state IN ('QUEUED', 'PENDING', 'CLAIMED', 'INPROGRESS');
