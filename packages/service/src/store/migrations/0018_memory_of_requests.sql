-- What a harness remembers is kept before it asks a person too.

ALTER TABLE executions
  -- The memory is that of the moment before this was asked; NULL: of the end of its turn.
  ADD COLUMN memory_request text;
