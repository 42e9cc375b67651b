-- The commits at which the run of a comparison, or a run below one, begins; NULL: the run is not of a comparison. Such a run changes no
-- repository at its code host.
ALTER TABLE run_requests ADD COLUMN comparison_commits jsonb;
