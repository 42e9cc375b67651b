/** Encrypts stored secrets with the present key of the vault after the key was changed. */
import type { Queryable } from '../store/database/database.ts';
import { bytes, defineStatement, integer, nullable, type TypedStatement, text } from '../store/database/statement.ts';
import type { Vault } from './vault.ts';

/** The statements that encrypt the texts of one table again. */
export interface SealedRows {
  /** Selects at most $3 rows that are encrypted with one of the keys $2, but not with the key $1. */
  readonly read: TypedStatement<{ id: string; sealed: Buffer; earlier: Buffer | null }>;
  /** Replaces the texts of row $1 by $4 and $5, which are encrypted with key $3, only if the first text is still $2. */
  readonly write: TypedStatement<object>;
  /** Counts the rows that were encrypted with another key than the keys $1. */
  readonly countOthers: TypedStatement<{ count: number }>;
  /** Returns the `purpose` with which the texts of a row are encrypted. */
  purpose(id: string): string;
}

/** The table and the column of the encrypted texts. The domain that owns the table defines these values. */
interface SealedColumns {
  readonly table: string;
  readonly id: 'id' | 'uid' | 'name';
  readonly sealed: string;
  /** The columns of the previous secret, if the secret was replaced: its encrypted text, and the time until which it is still accepted. */
  readonly earlier?: { readonly sealed: string; readonly until: string };
  /** SQL: further assignments in the statement that replaces a text. */
  readonly alsoSets?: string;
  purpose(id: string): string;
}

/** Defines the statements that encrypt the texts of a table again. */
export function defineSealedRows({ table, id, sealed, earlier, alsoSets, purpose }: SealedColumns): SealedRows {
  const assignments = [
    'vault_key_id = $3',
    `${sealed} = $4`,
    ...(earlier ? [`${earlier.sealed} = $5`] : []),
    ...(alsoSets ? [alsoSets] : []),
  ];
  return {
    read: defineStatement({
      name: `read_${table}_to_seal_again`,
      text: `
        SELECT ${id}::text AS id, ${sealed} AS sealed,
          ${earlier ? `CASE WHEN ${earlier.until} > clock_timestamp() THEN ${earlier.sealed} END` : 'NULL::bytea'} AS earlier
        FROM ${table}
        WHERE ${sealed} IS NOT NULL AND vault_key_id <> $1 AND vault_key_id = ANY($2::text[]) LIMIT $3`,
      row: { id: text(), sealed: bytes, earlier: nullable(bytes) },
    }),
    write: defineStatement({
      name: `seal_${table}_again`,
      text: `
        UPDATE ${table} SET ${assignments.join(', ')}
        WHERE ${id} = $1 AND ${sealed} = $2${earlier ? '' : ' AND $5::bytea IS NULL'}`,
      row: {},
    }),
    countOthers: defineStatement({
      name: `count_${table}_of_other_keys`,
      text: `SELECT count(*) AS count FROM ${table} WHERE vault_key_id <> ALL($1::text[])`,
      row: { count: integer },
    }),
    purpose,
  };
}

const batchRows = 100;

/**
 * Encrypts the rows again with the first key of the vault, each row in a separate statement. After a crash, some rows are still
 * encrypted with an earlier key, and the vault can decrypt these rows too. Returns the number of rows that stay encrypted with another
 * key, because this process cannot decrypt them.
 */
export async function sealAgain(db: Queryable, vault: Vault, rows: SealedRows): Promise<number> {
  for (;;) {
    const rowsOfBatch = await db.query(rows.read, [vault.keyId, vault.keyIds, batchRows]);
    for (const row of rowsOfBatch) {
      const again = (sealed: Buffer) => vault.seal(rows.purpose(row.id), vault.open(rows.purpose(row.id), sealed));
      const earlier = row.earlier && again(row.earlier);
      await db.query(rows.write, [row.id, row.sealed, vault.keyId, again(row.sealed), earlier]);
    }
    if (rowsOfBatch.length < batchRows) break;
  }
  const [others] = await db.query(rows.countOthers, [[vault.keyId]]);
  return others?.count ?? 0;
}
