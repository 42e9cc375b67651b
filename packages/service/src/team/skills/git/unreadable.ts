/**
 * Why a repository could not be read. `refused`: the code host or the stored credential gives no access; `unsuitable`: the repository
 * is too large, empty, or of a kind that is not supported; `unavailable`: the code host or this machine cannot do it now.
 */
export type UnreadableKind = 'refused' | 'unsuitable' | 'unavailable';

/** Thrown if a repository cannot be read. The message is a sentence for the caller of the API. */
export class Unreadable extends Error {
  readonly kind: UnreadableKind;
  constructor(kind: UnreadableKind, message: string) {
    super(message);
    this.kind = kind;
  }
}
