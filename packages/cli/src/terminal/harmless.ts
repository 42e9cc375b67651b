/**
 * Makes text from a sandbox harmless for a terminal. An agent can print escape sequences that change colours, move the cursor over
 * existing text, set the window title, write the clipboard (OSC 52), or make the terminal send input as if a person typed it. So all
 * escape sequences are removed. ECMA-48 defines their forms.
 */

import { shorten } from '@runyard/contract/wire/shorten';

type Where = 'text' | 'escape' | 'sequence' | 'string' | 'string-escape';

/** Cleans a stream chunk by chunk. Also removes an escape sequence that is split over two chunks. */
export interface Cleaner {
  /** Returns the harmless part of the next chunk: printable text, tabs and newlines. */
  clean(piece: string): string;
}

/**
 * Characters that reorder the text around them on the screen (CVE-2021-42574) or that are invisible, and separators that some terminals
 * show as line breaks. Joiners and variation selectors stay, because scripts and emoji need them.
 */
const deceptive = /(?![\u200c\u200d]|\p{Variation_Selector})\p{Default_Ignorable_Code_Point}|[\p{Zl}\p{Zp}]/u;
const escapedInJson = new RegExp(`[\u007f-\u009f]|${deceptive.source}`, 'gu');
const escapeOf = (char: string): string =>
  char
    .split('')
    .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
    .join('');

/**
 * Some escape sequences (OSC, DCS, APC, PM, SOS) contain a string. Of such a string, at most this number of characters is removed; the rest
 * is shown as text.
 */
const longestString = 4096;

export function createCleaner(): Cleaner {
  let where: Where = 'text';
  let inString = 0;
  let afterReturn = false;

  function text(char: string, code: number): string {
    if (code === 0x1b) {
      where = 'escape';
      return '';
    }
    if (code === 0x9b) {
      where = 'sequence';
      return '';
    }
    if (code === 0x90 || code === 0x98 || code === 0x9d || code === 0x9e || code === 0x9f) {
      where = 'string';
      inString = 0;
      return '';
    }
    if (char === '\n' || char === '\t') return char;
    if (code < 0x20 || (code >= 0x7f && code < 0xa0)) return '';
    return deceptive.test(char) ? '' : char;
  }

  function step(char: string): string {
    const code = char.codePointAt(0) ?? 0;
    switch (where) {
      case 'text':
        return text(char, code);
      case 'escape':
        if (char === '[') where = 'sequence';
        else if (char === ']' || char === 'P' || char === 'X' || char === '^' || char === '_') {
          where = 'string';
          inString = 0;
        } else if (code >= 0x20 && code <= 0x2f) where = 'escape';
        else if (code >= 0x30 && code < 0x7f) where = 'text';
        else {
          where = 'text';
          return text(char, code);
        }
        return '';
      case 'sequence':
        if (code >= 0x20 && code <= 0x3f) return '';
        where = 'text';
        return code >= 0x40 && code <= 0x7e ? '' : text(char, code);
      case 'string':
        inString += 1;
        if (code === 0x07 || code === 0x9c) where = 'text';
        else if (code === 0x1b) where = 'string-escape';
        else if (char === '\n' || inString > longestString) {
          where = 'text';
          return text(char, code);
        }
        return '';
      case 'string-escape':
        where = 'text';
        if (char === '\\') return '';
        where = 'escape';
        return step(char);
    }
  }

  return {
    clean(piece) {
      let result = '';
      for (const char of piece) {
        // After a carriage return without a newline, a terminal draws over the line, for example for a progress bar. Here each redrawn
        // line becomes a separate line.
        if (afterReturn && char !== '\n' && char !== '\r') result += '\n';
        afterReturn = where === 'text' && char === '\r';
        if (!afterReturn) result += step(char);
      }
      return result;
    },
  };
}

/** Makes a whole text harmless. Keeps newlines. */
export function harmless(text: string): string {
  return createCleaner().clean(text);
}

const escapeCharacter = '\u001b';
const harmful = new RegExp(
  `\\u001b\\[(?:[12]|22|3[12369])m|[\\u0000-\\u0008\\u000b-\\u001f\\u007f-\\u009f]|${deceptive.source}`,
  'gu',
);

/**
 * Removes all control and deceptive characters from the output of a command, except newlines, tabs and the colours of `colours.ts`. Of an
 * escape sequence in text from outside, the printable rest stays.
 */
export function forTerminal(output: string): string {
  return output.replace(harmful, (found) => (found.startsWith(escapeCharacter) && found.length > 1 ? found : ''));
}

/** Makes a title, name or path harmless, on one line of at most `max` characters. */
export function harmlessLine(text: string, max = 200): string {
  const line = harmless(text).replace(/\s+/g, ' ').trim();
  return shorten(line, max);
}

/** Makes a command or a question harmless, on one line of at most `max` characters. Marks each place at which the text had a line break. */
export function harmlessLines(text: string, max = 200): string {
  return harmlessLine(
    harmless(text)
      .trim()
      .replace(/\s*\n\s*/g, ' ⏎ '),
    max,
  );
}

/**
 * Returns JSON in which all characters that are harmful on a terminal are escaped. JSON itself escapes only U+0000 to U+001F. Without
 * `indent`, the result is one line.
 */
export function harmlessJson(value: unknown, indent?: number): string {
  return JSON.stringify(value, null, indent).replace(escapedInJson, escapeOf);
}
