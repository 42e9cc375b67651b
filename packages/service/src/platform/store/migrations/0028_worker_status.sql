-- Report of a worker about its program and its disk. NULL: the worker sends none.
ALTER TABLE worker_connections
  ADD COLUMN version text,
  -- Of the file system of its sandboxes.
  ADD COLUMN disk_free_bytes bigint,
  ADD COLUMN disk_total_bytes bigint;
