-- The person who made an agent key; NULL: of earlier keys it is not known.
ALTER TABLE api_keys ADD COLUMN created_by_uid text;
UPDATE api_keys SET created_by_uid = a.actor_uid FROM audit_entries a
WHERE api_keys.kind = 'agent' AND a.action = 'key.create' AND a.actor_kind = 'user' AND a.subject_uid = api_keys.id::text;
