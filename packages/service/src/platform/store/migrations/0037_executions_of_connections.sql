-- The live executions of a worker's connection, whose leases it renews every few seconds: without this index, each connection read all live executions.
CREATE INDEX executions_of_connection ON executions (connection_id) WHERE phase NOT IN ('queued', 'ended');
