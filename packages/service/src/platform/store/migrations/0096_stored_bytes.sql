-- The bytes that a team stores are summed from these indexes alone.
CREATE INDEX artifacts_bytes_of_team ON artifacts (team_id) INCLUDE (size_bytes) WHERE size_bytes IS NOT NULL;
CREATE INDEX executions_bytes_of_team ON executions (team_id) INCLUDE (workspace_bytes) WHERE workspace_bytes IS NOT NULL;
