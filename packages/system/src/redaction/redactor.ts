/** Removes known secrets from text that arrives in pieces, even if a secret spans two pieces. */
import { lineBreaks, spellingsOf, withoutLineBreaks } from './spellings.ts';

/** Text that replaces a secret in stored text. */
export const redacted = '«redacted»';

/**
 * Matches every run token and API key: 32 random bytes in base64url. Without this pattern, keys of which the service stores only the hash
 * could not be found.
 */
const ownCredentials = /ry[rk]_[A-Za-z0-9_-]{43}/g;

/** A piece of a stream after redaction. */
export interface RedactedPiece {
  /** Safe to store. */
  readonly text: string;
  /**
   * The end of the piece that is held back, because it may be the beginning of a secret. The caller must pass this text with the next
   * piece of the same stream.
   */
  readonly held: string;
}

export interface Redactor {
  /** Redacts a complete text that is not a piece of a stream. */
  whole(text: string): string;
  /** Redacts the next piece of a stream, together with the held text of the previous piece. */
  piece(held: string, text: string): RedactedPiece;
  /** Redacts every string inside a JSON value, member names included. */
  value(value: unknown): unknown;
}

/** Returns the positions in `text` of all characters that do not belong to line breaks. The last item is the length of the text. */
function positionsOf(text: string): number[] {
  const positions: number[] = [];
  let from = 0;
  for (const { index, 0: found } of text.matchAll(lineBreaks)) {
    for (; from < index; from += 1) positions.push(from);
    from = index + found.length;
  }
  for (; from <= text.length; from += 1) positions.push(from);
  return positions;
}

/** Returns the text that replaces a found secret. */
type Replace = (found: string) => string;

/** Replaces each occurrence of `form` in the text, even with line breaks inside it. */
function withoutForm(text: string, form: string, replace: Replace): string {
  const joined = withoutLineBreaks(text);
  let at = joined.indexOf(form);
  if (at < 0) return text;
  const positions = positionsOf(text);
  let clean = '';
  let from = 0;
  for (; at >= 0; at = joined.indexOf(form, at + form.length)) {
    const begin = positions[at] ?? text.length;
    const end = (positions[at + form.length - 1] ?? text.length) + 1;
    clean += text.slice(from, begin) + replace(text.slice(begin, end));
    from = end;
  }
  return clean + text.slice(from);
}

/** Returns the length of the longest ending of `text` that is a beginning of `form`, but not the whole `form`. */
function endingLength(text: string, form: string): number {
  const tail = text.slice(-(form.length - 1));
  const first = form.charAt(0);
  for (let at = tail.indexOf(first); at >= 0; at = tail.indexOf(first, at + 1)) {
    if (form.startsWith(tail.slice(at))) return tail.length - at;
  }
  return 0;
}

/** Redacts complete texts and streams of text. */
export type TextRedactor = Pick<Redactor, 'whole' | 'piece'>;

/**
 * Creates a redactor that replaces these forms, and run tokens and API keys that are in one piece. `forms` must be sorted by length, the
 * longest first.
 */
export function redactForms(forms: readonly string[], replace: Replace): TextRedactor {
  const whole = (text: string): string => {
    let clean = text.replaceAll(ownCredentials, replace);
    // First searches the text with its line breaks, and then the text without line breaks. The first search is needed because the
    // characters `\n` count as an escaped line break, but the `n` may be the first letter of a secret after a backslash.
    for (const form of forms) if (clean.includes(form)) clean = clean.replaceAll(form, replace);
    let joined = withoutLineBreaks(clean);
    if (joined.length === clean.length) return clean;
    for (const form of forms) {
      if (!joined.includes(form)) continue;
      clean = withoutForm(clean, form, replace);
      joined = withoutLineBreaks(clean);
    }
    return clean;
  };

  const longestEnding = (text: string): number =>
    forms.reduce((longest, form) => Math.max(longest, endingLength(text, form)), 0);

  /**
   * Returns the position from which the end of the text may be the beginning of a secret. Returns the length of the text if there is no
   * such position.
   */
  const heldFrom = (text: string): number => {
    const asItIs = text.length - longestEnding(text);
    const joined = withoutLineBreaks(text);
    // Also checks the text without a final backslash, because the backslash may be the first half of an escaped line break.
    const candidates = joined.endsWith('\\') ? [joined, joined.slice(0, -1)] : [joined];
    if (joined.length === text.length && candidates.length === 1) return asItIs;
    const positions = positionsOf(text);
    return candidates.reduce((from, each) => {
      const length = longestEnding(each);
      return length === 0 ? from : Math.min(from, positions[each.length - length] ?? from);
    }, asItIs);
  };

  return {
    whole,
    piece: (held, text) => {
      const clean = whole(held + text);
      const from = heldFrom(clean);
      return { text: clean.slice(0, from), held: clean.slice(from) };
    },
  };
}

/**
 * Creates a redactor that removes these secrets. It finds each secret unchanged, in escapes of JSON, URLs, markup and shells, in base64 and
 * hex, and with line breaks inside. The redactor also finds every run token and API key that is complete in one piece.
 */
export function createRedactor(secrets: readonly string[]): Redactor {
  const text = redactForms(spellingsOf(secrets), () => redacted);
  const value = (input: unknown): unknown => {
    if (typeof input === 'string') return text.whole(input);
    if (Array.isArray(input)) return input.map(value);
    if (input === null || typeof input !== 'object') return input;
    return Object.fromEntries(Object.entries(input).map(([key, entry]) => [text.whole(key), value(entry)]));
  };
  return { ...text, value };
}
