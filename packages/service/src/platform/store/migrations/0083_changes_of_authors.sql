-- Changes are counted for each author too, so that one author cannot use up those of the team. author: '' for the team, else kind and uid.
ALTER TABLE audit_days ADD COLUMN author text NOT NULL DEFAULT '';
ALTER TABLE audit_days DROP CONSTRAINT audit_days_pkey;
ALTER TABLE audit_days ADD PRIMARY KEY (team_id, day, author);
