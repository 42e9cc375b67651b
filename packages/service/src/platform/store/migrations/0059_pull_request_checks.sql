-- Contract: needs code of migration 0037 or later.
-- Checks of pull requests, the starts that their events cause, and Apps whose log cannot be read.
ALTER TABLE pull_requests
  -- The commit at the head; NULL: no event had it yet.
  ADD COLUMN head_sha text,
  ADD COLUMN merged_by_login text,
  -- False: a bot or an App merged it.
  ADD COLUMN merged_by_person boolean;

ALTER TABLE pull_request_events
  -- Of checks_completed: id, app, head_sha and conclusion of the check suite.
  ADD COLUMN check_suite jsonb,
  DROP CONSTRAINT pull_request_events_kind_check,
  ADD CONSTRAINT pull_request_events_kind_check CHECK (kind IN ('opened', 'code_push', 'review_approved', 'review_changes_requested',
    'review_commented', 'comment', 'review_comment', 'pr_action', 'checks_completed'));

ALTER TABLE starts
  -- The pull request of a run, if the trigger accepts only events of such pull requests.
  ADD COLUMN pull_request_url text,
  -- Of checks: the commit that they checked.
  ADD COLUMN pull_request_head text;
CREATE INDEX starts_pull_request ON starts (automation_uid, pull_request_url) WHERE pull_request_url IS NOT NULL;

ALTER TABLE github_apps
  -- Why GitHub's log of deliveries cannot be read; NULL: it can.
  ADD COLUMN poll_problem text;
