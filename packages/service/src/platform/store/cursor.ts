import { createHash } from 'node:crypto';

/** The last entry of a page: its sort value in the database's spelling (times to the microsecond), and its id. */
export interface CursorPosition {
  readonly value: string | null;
  readonly id: string;
  /** How the first page found its runs: by exact words, or by similar words. All later pages use the same way. */
  readonly isSimilar?: boolean;
}

/** The part of a signer that cursors need. */
export interface CursorSigner {
  sign(purpose: string, text: string): string;
  verify(purpose: string, text: string, signature: string): boolean;
}

const purpose = 'cursor';

/** The identity of a list: a cursor works only for the list that it was made for. */
export const listIdentity = (parts: unknown): string =>
  createHash('sha256').update(JSON.stringify(parts)).digest('base64url').slice(0, 22);

/** Returns a cursor that is opaque to the client and signed, so that a client cannot change the query. */
export function writeCursor(signer: CursorSigner, identity: string, position: CursorPosition): string {
  const text = Buffer.from(
    JSON.stringify([identity, position.value, position.id, position.isSimilar ?? false]),
  ).toString('base64url');
  return `${text}.${signer.sign(purpose, text)}`;
}

/** Reasons for refusing a cursor: another service made it, or it was made for another sort, filter or team. */
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
