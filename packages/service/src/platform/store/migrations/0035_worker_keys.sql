-- Contract: needs code of migration 0033 or later.
-- Keys of the kind 'worker' connect workers of the hosted pool and open nothing else. They have no person, so code without this kind refuses them.
-- It writes only the other kinds, which the rule still accepts.
ALTER TABLE api_keys DROP CONSTRAINT api_keys_kind_check,
  ADD CONSTRAINT api_keys_kind_check CHECK (kind IN ('personal', 'agent', 'worker')),
  ADD CHECK (kind <> 'worker' OR agent_uid IS NULL);
