import type { SealedRows } from '../../platform/secrets/seal-again.ts';
import { bytes, defineStatement, integer, nullable, uuid } from '../../platform/store/database/statement.ts';
import { sealPurpose } from './records.ts';

/** The secret parts of the credentials of code hosts. */
export const sealedCredentials: SealedRows = {
  read: defineStatement({
    name: 'read_code_host_credentials_to_seal_again',
    text: `
      SELECT id, sealed_secret AS sealed, NULL::bytea AS earlier FROM code_host_credentials
      WHERE vault_key_id <> $1 AND vault_key_id = ANY($2::text[]) LIMIT $3`,
    row: { id: uuid, sealed: bytes, earlier: nullable(bytes) },
  }),
  write: defineStatement({
    name: 'seal_code_host_credential_again',
    text: `
      UPDATE code_host_credentials SET vault_key_id = $3, sealed_secret = $4
      WHERE id = $1 AND sealed_secret = $2 AND $5::bytea IS NULL`,
    row: {},
  }),
  countOthers: defineStatement({
    name: 'count_code_host_credentials_of_other_keys',
    text: 'SELECT count(*) AS count FROM code_host_credentials WHERE vault_key_id <> ALL($1::text[])',
    row: { count: integer },
  }),
  purpose: sealPurpose,
};
