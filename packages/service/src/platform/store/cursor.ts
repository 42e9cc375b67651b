import { createHash } from 'node:crypto';

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
