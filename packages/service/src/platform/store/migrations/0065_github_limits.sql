-- Limits of what runs cause on GitHub, and dismissed reviews.

-- How often a run has asked its tools to write this. The limit of attempts counts them.
ALTER TABLE github_comments ADD COLUMN attempts integer NOT NULL DEFAULT 1;

-- True: a person caused the event, and no run has pushed its commit. Automations may again start runs for the pull request.
ALTER TABLE pull_request_events
  ADD COLUMN frees_starts boolean NOT NULL DEFAULT false,
  -- GitHub's id of the review that was submitted, or, of pr_action, dismissed. NULL: another event.
  ADD COLUMN review_id bigint;
CREATE INDEX pushed_branches_to ON pushed_branches (to_id);

ALTER TABLE starts
  -- The largest number of runs for `pull_request_url`; NULL also in rows of older processes.
  ADD COLUMN pull_request_max_starts integer,
  -- The pull request that the event is about, if its trigger sets no limit itself.
  ADD COLUMN about_pull_request text;
CREATE INDEX starts_about_pull_request ON starts (automation_uid, about_pull_request) WHERE about_pull_request IS NOT NULL;
