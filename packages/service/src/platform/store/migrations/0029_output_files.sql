-- Maximum size of the file with the whole output of a command. 0: no such files are kept.
ALTER TABLE teams ADD COLUMN max_output_file_mb integer NOT NULL DEFAULT 64 CHECK (max_output_file_mb BETWEEN 0 AND 10240);
