-- Finds starts that cancel runs in the order in which they are read, each second. The index by automation could not give this order: until
-- PostgreSQL had analyzed the table after a flood of deliveries, it read all starts. No start can be written while the new index is made,
-- which reads the table once.
DROP INDEX automation_starts_cancelling;
CREATE INDEX automation_starts_cancelling ON automation_starts (id) WHERE cancels_previous;
