import { createHash } from 'node:crypto';
import type { PageInfo } from '@runyard/contract/wire/profiles';

/** The last entry of a page. `value` is the sort value of the entry, in the form in which the database returns it: times have microseconds. */
export interface CursorPosition {
  readonly value: string | null;
  readonly id: string;
  /** How a search found the runs of the first page. True: by similar words; false: by exact words. All later pages search in the same way. */
  readonly isSimilar?: boolean;
}

/** The methods of a `Signer` that cursors need. */
export interface CursorSigner {
  sign(purpose: string, text: string): string;
  verify(purpose: string, text: string, signature: string): boolean;
}

const purpose = 'cursor';

/** Returns a hash that identifies a list and its query, because a cursor works only for the list for which it was made. */
export const listIdentity = (parts: unknown): string =>
  createHash('sha256').update(JSON.stringify(parts)).digest('base64url').slice(0, 22);

/** Returns a signed cursor. A client cannot make or change a cursor, so a client cannot change the query through a cursor. */
export function writeCursor(signer: CursorSigner, identity: string, position: CursorPosition): string {
  const text = Buffer.from(
    JSON.stringify([identity, position.value, position.id, position.isSimilar ?? false]),
  ).toString('base64url');
  return `${text}.${signer.sign(purpose, text)}`;
}

/** Why a cursor is refused. `malformed`: this service did not make it. `other_list`: it was made for another sort, filter or team. */
export type CursorResult =
  | { readonly ok: true; readonly position: CursorPosition }
  | { readonly ok: false; readonly reason: 'malformed' | 'other_list' };

export function readCursor(signer: CursorSigner, identity: string, cursor: string): CursorResult {
  const [text, signature, ...rest] = cursor.split('.');
  if (!text || !signature || rest.length > 0 || !signer.verify(purpose, text, signature)) {
    return { ok: false, reason: 'malformed' };
  }
  const [of, value, id, isSimilar] = JSON.parse(Buffer.from(text, 'base64url').toString()) as [
    string,
    string | null,
    string,
    boolean,
  ];
  return of === identity ? { ok: true, position: { value, id, isSimilar } } : { ok: false, reason: 'other_list' };
}

/** The query of a page. `cursor`: absent for the first page. */
interface PageQuery {
  readonly limit: number;
  readonly cursor?: string | undefined;
}

/** How the rows of a list are read. */
interface ListRows<Row> {
  /** Identifies the list with its filters, because a cursor works only for the list for which it was made. */
  readonly list: unknown;
  /** Reads `count` rows. `after`: the last row of the previous page; undefined for the first page. */
  readonly read: (after: CursorPosition | undefined, count: number) => Promise<readonly Row[]>;
  readonly positionOf: (row: Row) => CursorPosition;
}

/**
 * Returns the rows of one page, and whether there is a next page. Reads one row more than the page has, to know that. Returns null if the
 * cursor was made for another list.
 */
export async function readPage<Row>(
  signer: CursorSigner,
  { limit, cursor }: PageQuery,
  { list, read, positionOf }: ListRows<Row>,
): Promise<{ readonly page: readonly Row[]; readonly page_info: PageInfo } | null> {
  const identity = listIdentity(list);
  const found = cursor === undefined ? undefined : readCursor(signer, identity, cursor);
  if (found?.ok === false) return null;
  const rows = await read(found?.position, limit + 1);
  const page = rows.slice(0, limit);
  const last = page.at(-1);
  if (rows.length <= limit || last === undefined) return { page, page_info: { has_next_page: false } };
  return { page, page_info: { has_next_page: true, next_cursor: writeCursor(signer, identity, positionOf(last)) } };
}

/** Returns the position of a row in a list that is sorted only by id. */
export const positionOfId = ({ id }: { readonly id: string }): CursorPosition => ({ value: null, id });

/** Returns the position of a row in a list that is sorted by name. */
export const positionOfName = ({ name, uid }: { readonly name: string; readonly uid: string }): CursorPosition => ({
  value: name,
  id: uid,
});
