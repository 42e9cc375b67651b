-- True: what the sender, another run, wrote may follow a text of somebody else than the executor of the run that gets it.
ALTER TABLE followups ADD COLUMN has_other_authors boolean NOT NULL DEFAULT false;
