-- Schedules of the team that start automations (`schedule_ids`): one start for each time and each automation, beside the schedule's own.
CREATE UNIQUE INDEX starts_once_per_time_and_automation ON starts (schedule_id, due_at, coalesce(automation_uid, ''))
  WHERE schedule_id IS NOT NULL;
DROP INDEX starts_once_per_time;
-- The history of an automation: its starts by times of schedules.
CREATE INDEX starts_of_times ON starts (automation_uid, id) WHERE automation_uid IS NOT NULL AND schedule_id IS NOT NULL;
-- Only triggers with `schedule_ids` have the provider `schedule` and a filter.
CREATE INDEX automations_with_schedule_ids ON automations (team_id) WHERE triggers @> '[{"provider": "schedule", "filter": {}}]';
