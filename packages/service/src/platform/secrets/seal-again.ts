/** Encrypts rows again that have another key than the vault's present one. */
import type { Queryable } from '../store/database/database.ts';
import type { TypedStatement } from '../store/database/statement.ts';
import type { Vault } from './vault.ts';

/** The statements, which belong to the owner of a table. */
export interface SealedRows {
  /** Selects rows that are encrypted with another key than $1, but with one of $2; at most $3. */
  readonly read: TypedStatement<{ id: string; sealed: Buffer; earlier: Buffer | null }>;
  /** Replaces the texts of row $1 by $4 and $5, which are encrypted with key $3, only if the first is still $2. */
  readonly write: TypedStatement<object>;
  /** Counts the rows that are encrypted with none of the keys $1. */
  readonly countOthers: TypedStatement<{ count: number }>;
  /** Returns the purpose for which the texts of a row are encrypted. */
  purpose(id: string): string;
}

const batchRows = 100;

/**
 * Encrypts the rows again with the first key of the vault, each in a statement of its own: a crash leaves rows of both keys, which the
 * vault can decrypt. Returns how many rows have another key afterwards: those that this process cannot decrypt.
 */
export async function sealAgain(db: Queryable, vault: Vault, rows: SealedRows): Promise<number> {
  for (;;) {
    const found = await db.query(rows.read, [vault.keyId, vault.keyIds, batchRows]);
    for (const row of found) {
      const again = (sealed: Buffer) => vault.seal(rows.purpose(row.id), vault.open(rows.purpose(row.id), sealed));
      const earlier = row.earlier && again(row.earlier);
      await db.query(rows.write, [row.id, row.sealed, vault.keyId, again(row.sealed), earlier]);
    }
    if (found.length < batchRows) break;
  }
  const [left] = await db.query(rows.countOthers, [[vault.keyId]]);
  return left?.count ?? 0;
}
