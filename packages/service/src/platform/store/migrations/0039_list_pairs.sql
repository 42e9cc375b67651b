-- Lists of pairs of filters that match many runs each, but may match few runs or none together (docs/decisions/run-list.md).

-- The runs of a state and a source, in the default order.
CREATE INDEX runs_by_state_and_source ON runs (team_id, state, source COLLATE "C", updated_at, id);
-- The runs without an environment, in the order of their skills. Runs without a skill come last in this order, and are in runs_skill.
CREATE INDEX runs_without_environment_by_skill ON runs (team_id, skill_spec COLLATE "C", id)
  WHERE environment_id IS NULL AND skill_spec IS NOT NULL;
