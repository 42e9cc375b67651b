-- Contract: needs code of migration 0037 or later.
-- Whom schedules, automations and budgets notify of what goes wrong.

-- At most one row for a schedule, an automation, and the budget of a team (both ids NULL).
CREATE TABLE notify_rules (
  id uuid PRIMARY KEY DEFAULT new_uuid_v7(),
  team_id uuid NOT NULL REFERENCES teams ON DELETE CASCADE,
  schedule_id uuid UNIQUE REFERENCES schedules ON DELETE CASCADE,
  automation_uid text UNIQUE REFERENCES automations ON DELETE CASCADE,
  -- List of {on, times?, to}: UIDs of people and ids of event subscriptions, of which some may not exist any more.
  rules jsonb NOT NULL,
  -- Of a budget: people were notified that it is used up, and it has not been raised since.
  is_told boolean NOT NULL DEFAULT false,
  CHECK (num_nonnulls(schedule_id, automation_uid) <= 1)
);
CREATE INDEX notify_rules_team ON notify_rules (team_id);
CREATE UNIQUE INDEX notify_rules_of_budget ON notify_rules (team_id) WHERE schedule_id IS NULL AND automation_uid IS NULL;

-- Runs of schedules and automations that failed, until the service has counted how many of them failed in a row.
CREATE TABLE uncounted_failures (
  run_id uuid PRIMARY KEY REFERENCES runs ON DELETE CASCADE
);

ALTER TABLE inbox_items
  -- Title and description of a notification that is about no run.
  ADD COLUMN about jsonb,
  ADD COLUMN schedule_id uuid REFERENCES schedules ON DELETE CASCADE,
  ADD COLUMN automation_uid text REFERENCES automations ON DELETE CASCADE,
  DROP CONSTRAINT inbox_items_kind_check,
  ADD CONSTRAINT inbox_items_kind_check CHECK (kind IN ('question', 'answer_question', 'spec_review', 'pr_review', 'blocked', 'failed',
    'acceptance', 'failed_times', 'missed', 'budget'));
CREATE INDEX inbox_items_schedule ON inbox_items (schedule_id) WHERE schedule_id IS NOT NULL;
CREATE INDEX inbox_items_automation ON inbox_items (automation_uid) WHERE automation_uid IS NOT NULL;
CREATE INDEX inbox_items_budget ON inbox_items (team_id) WHERE kind = 'budget';
