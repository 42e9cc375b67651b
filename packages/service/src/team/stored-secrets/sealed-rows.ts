import type { SealedRows } from '../../platform/secrets/seal-again.ts';
import { bytes, defineStatement, integer, nullable, uuid } from '../../platform/store/database/statement.ts';
import { purposeOfRunSecret, purposeOfSecret } from './seal-purpose.ts';

const read = { id: uuid, sealed: bytes, earlier: nullable(bytes) };

/** The stored secrets. */
export const sealedSecrets: SealedRows = {
  read: defineStatement({
    name: 'read_secrets_to_seal_again',
    text: `
      SELECT id, sealed_value AS sealed, NULL::bytea AS earlier FROM stored_secrets
      WHERE vault_key_id <> $1 AND vault_key_id = ANY($2::text[]) LIMIT $3`,
    row: read,
  }),
  write: defineStatement({
    name: 'seal_secret_again',
    text: `
      UPDATE stored_secrets SET vault_key_id = $3, sealed_value = $4
      WHERE id = $1 AND sealed_value = $2 AND $5::bytea IS NULL`,
    row: {},
  }),
  countOthers: defineStatement({
    name: 'count_secrets_of_other_keys',
    text: 'SELECT count(*) AS count FROM stored_secrets WHERE vault_key_id <> ALL($1::text[])',
    row: { count: integer },
  }),
  purpose: purposeOfSecret,
};

/** The copies of secrets that runs have. */
export const sealedRunSecrets: SealedRows = {
  read: defineStatement({
    name: 'read_secrets_of_runs_to_seal_again',
    text: `
      SELECT id, sealed_value AS sealed, NULL::bytea AS earlier FROM run_secrets
      WHERE vault_key_id <> $1 AND vault_key_id = ANY($2::text[]) LIMIT $3`,
    row: read,
  }),
  write: defineStatement({
    name: 'seal_secret_of_run_again',
    text: `
      UPDATE run_secrets SET vault_key_id = $3, sealed_value = $4
      WHERE id = $1 AND sealed_value = $2 AND $5::bytea IS NULL`,
    row: {},
  }),
  countOthers: defineStatement({
    name: 'count_secrets_of_runs_of_other_keys',
    text: 'SELECT count(*) AS count FROM run_secrets WHERE vault_key_id <> ALL($1::text[])',
    row: { count: integer },
  }),
  purpose: purposeOfRunSecret,
};
