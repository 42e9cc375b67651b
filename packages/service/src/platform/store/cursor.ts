import { createHash } from 'node:crypto';

/** End of a page: the sort value as the database writes it (times to the microsecond), then the id. */
export interface CursorPosition {
  readonly value: string | null;
  readonly id: string;
  /** The way in which the first page found its runs: by the exact words, or by similar ones. The other pages use the same way. */
  readonly isSimilar?: boolean;
}

/** The part of a signer that cursors need. */
export interface CursorSigner {
  sign(purpose: string, text: string): string;
  verify(purpose: string, text: string, signature: string): boolean;
}

const purpose = 'cursor';

/** The identity of a list: a cursor fits only the list for which it was made. */
export const listIdentity = (parts: unknown): string =>
  createHash('sha256').update(JSON.stringify(parts)).digest('base64url').slice(0, 22);

/** Returns a cursor that is opaque to the client and signed, so that a client cannot change the query. */
export function writeCursor(signer: CursorSigner, identity: string, position: CursorPosition): string {
  const text = Buffer.from(
    JSON.stringify([identity, position.value, position.id, position.isSimilar ?? false]),
  ).toString('base64url');
  return `${text}.${signer.sign(purpose, text)}`;
}

/** Reasons why a cursor is refused: it was not made here, or for another sort, filter or team. */
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
