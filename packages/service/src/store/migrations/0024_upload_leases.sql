-- Uploads that are going on: one holder a name, on whatever service process, so that no sandbox fills the disk with uploads at once.
CREATE TABLE upload_leases (
  name text PRIMARY KEY,
  holder uuid NOT NULL,
  -- Extended while the upload goes on; a process that died leaves it to pass.
  expires_at timestamptz NOT NULL
);
CREATE INDEX upload_leases_by_end ON upload_leases (expires_at);
