import type { SealedRows } from '../../platform/secrets/seal-again.ts';
import { bytes, defineStatement, integer, nullable, uuid } from '../../platform/store/database/statement.ts';
import { purposeOf } from './sealed-values.ts';

/** The values of stored MCP servers. */
export const sealedServers: SealedRows = {
  read: defineStatement({
    name: 'read_mcp_servers_to_seal_again',
    text: `
      SELECT id, sealed_values AS sealed, NULL::bytea AS earlier FROM mcp_servers
      WHERE vault_key_id <> $1 AND vault_key_id = ANY($2::text[]) LIMIT $3`,
    row: { id: uuid, sealed: bytes, earlier: nullable(bytes) },
  }),
  write: defineStatement({
    name: 'seal_mcp_server_again',
    text: `
      UPDATE mcp_servers SET vault_key_id = $3, sealed_values = $4
      WHERE id = $1 AND sealed_values = $2 AND $5::bytea IS NULL`,
    row: {},
  }),
  countOthers: defineStatement({
    name: 'count_mcp_servers_of_other_keys',
    text: 'SELECT count(*) AS count FROM mcp_servers WHERE vault_key_id <> ALL($1::text[])',
    row: { count: integer },
  }),
  purpose: purposeOf,
};
