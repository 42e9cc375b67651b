-- Automation, factory and environment of the runs. NULL: the row is older than the column; '': the runs had none.
ALTER TABLE usage_days
  ADD COLUMN automation_uid text COLLATE "C",
  ADD COLUMN factory_uid text COLLATE "C",
  ADD COLUMN environment_uid text COLLATE "C",
  DROP CONSTRAINT usage_days_pkey;
-- One row for each group. No UID contains '?'.
CREATE UNIQUE INDEX usage_days_group ON usage_days (team_id, day, model_id, creator_kind, creator_uid, executor_kind, executor_uid,
  coalesce(automation_uid, '?'), coalesce(factory_uid, '?'), coalesce(environment_uid, '?'));
