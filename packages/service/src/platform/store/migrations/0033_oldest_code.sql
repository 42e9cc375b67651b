-- Number of a migration: code that ends before it fails on the schema that this migration left; 0: no code does.
ALTER TABLE schema_migrations ADD COLUMN oldest_code integer NOT NULL DEFAULT 0;
