-- The harness's own session whose state is in the kept workspace and home.
ALTER TABLE executions ADD COLUMN workspace_session text;
