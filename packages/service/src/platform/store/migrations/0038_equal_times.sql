-- Gives a new row the same created_at and updated_at. Two calls of clock_timestamp() in one row may differ by a millisecond.
ALTER TABLE factories ALTER created_at SET DEFAULT statement_timestamp(), ALTER updated_at SET DEFAULT statement_timestamp();
ALTER TABLE factory_tasks ALTER created_at SET DEFAULT statement_timestamp(), ALTER updated_at SET DEFAULT statement_timestamp();
ALTER TABLE webhooks ALTER created_at SET DEFAULT statement_timestamp(), ALTER updated_at SET DEFAULT statement_timestamp();
ALTER TABLE automations ALTER created_at SET DEFAULT statement_timestamp(), ALTER updated_at SET DEFAULT statement_timestamp();
