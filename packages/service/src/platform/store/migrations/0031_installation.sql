-- One row about the whole installation, which the first service writes. It is no part of a migration, because an import needs empty tables.
CREATE TABLE installation (
  is_only boolean PRIMARY KEY DEFAULT true CHECK (is_only),
  -- The blob store holds it too: so a service with another blob store notices.
  id uuid NOT NULL,
  has_marked_blobs boolean NOT NULL DEFAULT false,
  -- Key that seals secrets; NULL: none was used yet.
  vault_key_id text,
  -- When the bootstrap key was made. It is made once: a deleted one does not come back.
  bootstrapped_at timestamptz,
  -- Since when nothing is started or delivered, because the tables are a copy; NULL: everything works.
  paused_at timestamptz
);
