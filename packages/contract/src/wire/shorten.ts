/** Cuts text without splitting a character. This file imports nothing, because each agent process loads this file at its start. */

const isHighSurrogate = (unit: number): boolean => unit >= 0xd800 && unit <= 0xdbff;
const isLowSurrogate = (unit: number): boolean => unit >= 0xdc00 && unit <= 0xdfff;

/** Returns true if a cut before the UTF-16 unit at `index` would split a character. */
const splits = (text: string, index: number): boolean =>
  index > 0 && isHighSurrogate(text.charCodeAt(index - 1)) && isLowSurrogate(text.charCodeAt(index));

/** Returns at most the first `max` UTF-16 units of the text, as well-formed text: half of a surrogate pair becomes U+FFFD. */
export function firstPart(text: string, max: number): string {
  if (text.length <= max) return text.toWellFormed();
  return text.slice(0, splits(text, max) ? max - 1 : max).toWellFormed();
}

/** Returns at most the last `max` UTF-16 units of the text, as well-formed text: half of a surrogate pair becomes U+FFFD. */
export function lastPart(text: string, max: number): string {
  if (text.length <= max) return text.toWellFormed();
  const start = text.length - max;
  return text.slice(splits(text, start) ? start + 1 : start).toWellFormed();
}

/** Returns the text with at most `max` (1 or more) UTF-16 units, well-formed; a text that was cut ends with `…`. */
export function shorten(text: string, max: number): string {
  return text.length <= max ? text.toWellFormed() : `${firstPart(text, max - 1)}…`;
}

/** Yields the text in parts of at most `size` (2 or more) UTF-16 units, each well-formed. */
export function* partsOf(text: string, size: number): Generator<string> {
  for (let start = 0; start < text.length; ) {
    const limit = start + size;
    const end = limit < text.length && splits(text, limit) ? limit - 1 : limit;
    yield text.slice(start, end).toWellFormed();
    start = end;
  }
}

/**
 * Returns a joiner for the pieces of a text. If a character is split between two pieces, the joiner puts the whole character into the later
 * piece.
 */
export function joinHalves() {
  let half = '';
  return {
    /**
     * Returns the piece with whole characters. If the previous piece ended with half of a character, the result begins with the whole
     * character. If this piece ends with half of a character, the joiner keeps this half for the next piece.
     */
    push(piece: string): string {
      const text = half + piece;
      const end = isHighSurrogate(text.charCodeAt(text.length - 1)) ? text.length - 1 : text.length;
      half = text.slice(end);
      return text.slice(0, end);
    },
    /** Ends the text. Returns U+FFFD if the last piece ended with half of a character, and otherwise ''. */
    end(): string {
      const rest = half.toWellFormed();
      half = '';
      return rest;
    },
  };
}
