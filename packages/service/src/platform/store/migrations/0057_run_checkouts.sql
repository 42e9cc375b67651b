-- The commit of a pull request that a run checks out instead of the default branch of its repository.
ALTER TABLE run_requests ADD COLUMN checkout jsonb;
