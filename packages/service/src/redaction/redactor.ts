/** Removes known secrets from text that arrives in pieces, also where a secret spans two pieces. */

/** Replaces a secret in stored text. */
export const redacted = '«redacted»';

/** A shorter "secret" would remove common words from every text. */
const minSecretLength = 8;

/** Run tokens and API keys, also those of which the service knows only the hash: 32 random bytes in base64url. */
const ownCredentials = /ry[rk]_[A-Za-z0-9_-]{43}/g;

/** A piece of a stream after redaction. */
export interface RedactedPiece {
  /** Safe to store. */
  readonly text: string;
  /** The end of the piece, which may be the beginning of a secret: to put before the next piece of the same stream. */
  readonly held: string;
}

export interface Redactor {
  /** Redacts a whole text, which no further piece follows. */
  whole(text: string): string;
  /** Redacts the next piece of a stream, after the text that the piece before held back. */
  piece(held: string, text: string): RedactedPiece;
  /** Redacts every string inside a JSON value, member names included. */
  value(value: unknown): unknown;
}

/**
 * Creates a redactor of these secrets. It finds each secret as it is, as it is written inside a JSON string, and with its
 * lines joined. It also finds every run token and API key that is in one piece.
 */
export function createRedactor(secrets: readonly string[]): Redactor {
  const known = [
    ...new Set(
      secrets.flatMap((secret) => [secret, JSON.stringify(secret).slice(1, -1), secret.replaceAll(/\r?\n/g, '')]),
    ),
  ]
    .filter((secret) => secret.length >= minSecretLength)
    .sort((a, b) => b.length - a.length);

  const whole = (text: string): string => {
    let clean = text.replaceAll(ownCredentials, redacted);
    for (const secret of known) if (clean.includes(secret)) clean = clean.replaceAll(secret, redacted);
    return clean;
  };

  /** Returns the length of the longest ending that is the beginning of a secret. */
  const heldLength = (text: string): number => {
    let longest = 0;
    for (const secret of known) {
      for (let length = Math.min(secret.length - 1, text.length); length > longest; length -= 1) {
        if (text.endsWith(secret.slice(0, length))) longest = length;
      }
    }
    return longest;
  };

  const value = (input: unknown): unknown => {
    if (typeof input === 'string') return whole(input);
    if (Array.isArray(input)) return input.map(value);
    if (input === null || typeof input !== 'object') return input;
    return Object.fromEntries(Object.entries(input).map(([key, entry]) => [whole(key), value(entry)]));
  };

  return {
    whole,
    piece: (held, text) => {
      const clean = whole(held + text);
      const length = heldLength(clean);
      return { text: clean.slice(0, clean.length - length), held: clean.slice(clean.length - length) };
    },
    value,
  };
}
