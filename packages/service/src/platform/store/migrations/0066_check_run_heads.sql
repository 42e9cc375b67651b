-- Of check runs: the commit on which GitHub shows it. NULL also in rows of older processes.
ALTER TABLE github_comments ADD COLUMN head_sha text;
