-- Who created an object, so that no caller takes all objects that a team may have. NULL: not known.

ALTER TABLE mcp_servers ADD COLUMN creator_uid text;
ALTER TABLE factories ADD COLUMN creator_uid text;
