-- Container image of the environment when the run was created; null: none. Only workers that run images get the execution.
ALTER TABLE executions ADD COLUMN image text;
