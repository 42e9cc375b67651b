-- Where the code host had the repository at the last look, after redirects: host and path, in lower case. NULL: it was not read yet.
ALTER TABLE factory_sources ADD COLUMN found_at text;
