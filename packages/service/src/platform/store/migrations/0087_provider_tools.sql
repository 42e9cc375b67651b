-- The cost of the provider's own tools in a request to a model. NULL: the request was recorded by an earlier version, or used none.
ALTER TABLE model_requests ADD COLUMN tools_cost_usd numeric;

-- Members of requests to models that the gateway removed and the timeline of the run names, each once.
ALTER TABLE runs ADD COLUMN removed_members text[] NOT NULL DEFAULT '{}';
