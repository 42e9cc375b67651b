-- The moment of the tables in the last backup that was completed; NULL: none was made.
ALTER TABLE installation ADD COLUMN backed_up_at timestamptz;
