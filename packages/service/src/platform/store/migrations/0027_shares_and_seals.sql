-- Key of the vault that encrypts `value`; NULL: the value is not encrypted.
ALTER TABLE server_secrets ADD COLUMN vault_key_id text;

-- Who created an object, so that no caller takes all objects that a team may have. NULL: not known.

ALTER TABLE mcp_servers ADD COLUMN creator_uid text;
ALTER TABLE factories ADD COLUMN creator_uid text;
