-- Follow-ups to the sandbox of a failed setup, which stays for a while. They are no part of what the run was to do.
ALTER TABLE followups ADD COLUMN is_debug boolean NOT NULL DEFAULT false;
