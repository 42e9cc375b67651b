-- Values of the variables of a definition for one factory, which each sync of its repository uses.
ALTER TABLE factory_sources ADD COLUMN variables jsonb NOT NULL DEFAULT '{}';
