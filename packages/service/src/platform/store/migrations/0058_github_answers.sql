-- What a run writes on GitHub with its tools is a comment with `answer_of`, the id of the run. Such a row has no `run_id`, because it is not
-- the one comment about the run.
ALTER TABLE github_comments
  ADD COLUMN answer_of uuid,
  ADD COLUMN tool text,
  -- Page of what was written. NULL: not written, or the answer of GitHub was lost.
  ADD COLUMN url text;
CREATE INDEX github_comments_answers ON github_comments (answer_of) WHERE answer_of IS NOT NULL;

-- True: the service opened this pull request for the run. Anybody in the sandbox can report a pull request.
ALTER TABLE artifacts ADD COLUMN is_opened boolean NOT NULL DEFAULT false;
