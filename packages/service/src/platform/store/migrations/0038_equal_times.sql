-- A row that was never changed has one time: clock_timestamp() differs between two columns of the same row.
ALTER TABLE factories ALTER created_at SET DEFAULT statement_timestamp(), ALTER updated_at SET DEFAULT statement_timestamp();
ALTER TABLE factory_tasks ALTER created_at SET DEFAULT statement_timestamp(), ALTER updated_at SET DEFAULT statement_timestamp();
ALTER TABLE webhooks ALTER created_at SET DEFAULT statement_timestamp(), ALTER updated_at SET DEFAULT statement_timestamp();
ALTER TABLE automations ALTER created_at SET DEFAULT statement_timestamp(), ALTER updated_at SET DEFAULT statement_timestamp();
