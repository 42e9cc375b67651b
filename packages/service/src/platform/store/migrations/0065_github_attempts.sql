-- How often a run has asked its tools to write this. The limit of attempts counts them.
ALTER TABLE github_comments ADD COLUMN attempts integer NOT NULL DEFAULT 1;
