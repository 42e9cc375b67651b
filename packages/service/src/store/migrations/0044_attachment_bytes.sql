-- Small files are in their row: a file of the blob store costs two flushes of the disk, a row none of its own.

ALTER TABLE attachments
  -- The bytes of a small file; NULL: they are a blob.
  ADD COLUMN content bytea,
  ALTER COLUMN blob_key DROP NOT NULL,
  ADD CONSTRAINT attachments_bytes_are_in_one_place CHECK ((content IS NULL) <> (blob_key IS NULL));
DROP INDEX attachments_blob;
-- Finds the row that a blob belongs to.
CREATE INDEX attachments_blob ON attachments (blob_key) WHERE blob_key IS NOT NULL;
