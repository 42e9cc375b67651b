/** Takes known secrets out of text that arrives in pieces, also where a secret spans two pieces. */

/** What stands in place of a secret. */
export const redacted = '«redacted»';

/** A shorter "secret" would take common words out of every text. */
const minSecretLength = 8;

/** Run tokens and API keys, also those of which the service knows only the hash: 32 random bytes in base64url. */
const ownCredentials = /ry[rk]_[A-Za-z0-9_-]{43}/g;

/** Text before the last secret-like ending can be let go; the rest may be the beginning of a secret. */
export interface RedactedPiece {
  /** Safe to store. */
  readonly text: string;
  /** To put before the next piece of the same stream. */
  readonly held: string;
}

export interface Redactor {
  /** Whole text: nothing follows. */
  whole(text: string): string;
  /** The next piece of a stream, with what the piece before held back. */
  piece(held: string, text: string): RedactedPiece;
  /** Every string inside a JSON value, keys included. */
  value(value: unknown): unknown;
}

/**
 * A redactor of these values: as they are, as they stand inside a JSON string, and as they are when their lines are joined. Beside them of
 * all run tokens and API keys, but where one is cut in two pieces and is not among the values.
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
