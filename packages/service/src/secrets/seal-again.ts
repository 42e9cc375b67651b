/** Seals rows again whose key is not the one that seals now. */
import type { Queryable } from '../store/database/database.ts';
import type { TypedStatement } from '../store/database/statement.ts';
import type { Vault } from './vault.ts';

/** Statements of the owner of a table. */
export interface SealedRows {
  /** Rows that are sealed with another key than $1, but with one of $2; at most $3. */
  readonly read: TypedStatement<{ id: string; sealed: Buffer; earlier: Buffer | null }>;
  /** Replaces the texts of row $1, only if the first is $2 still, by $4 and $5, which are sealed with key $3. */
  readonly write: TypedStatement<object>;
  /** Counts the rows that are sealed with another key than $1. */
  readonly countOthers: TypedStatement<{ count: number }>;
  /** Returns the purpose that the texts of a row are sealed for. */
  purpose(id: string): string;
}

const batchRows = 100;

/**
 * Seals the rows again with the first key of the vault, each in a statement of its own: a crash leaves rows of both keys, which both
 * open. Returns how many rows have another key afterwards: those that this process cannot open.
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
  const [left] = await db.query(rows.countOthers, [vault.keyId]);
  return left?.count ?? 0;
}
