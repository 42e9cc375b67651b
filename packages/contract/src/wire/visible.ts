/** Shows hostile texts so that no character is hidden: on a terminal and in the dashboard (Unicode Technical Report 36). */

/**
 * Characters that reorder the text around them, that are invisible, or that control a terminal. Tabs and newlines are not replaced.
 * Variation selectors in emoji and joiners after a character that is not ASCII are not replaced either, because emoji and some scripts
 * need them.
 */
const deceptive =
  /(?![\t\n])\p{Cc}|(?!\u200c|\u200d|\ufe0f)\p{Default_Ignorable_Code_Point}|[\p{Zl}\p{Zp}\u2800]|(?<!\p{Emoji})\ufe0f|(?<!\P{ASCII})[\u200c\u200d]/gu;
/** White space that could move the rest of a text out of sight. */
const longSpace = /[\p{Zs}\t]{41,}/gu;
const emptyLines = /\n(?:[\p{Zs}\t]*\n){4,}/gu;

const nameOf = (char: string): string =>
  `[U+${(char.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}]`;

/** Returns the text with the name of each deceptive character in its place, such as `[U+202E]`. */
export const visibleText = (text: string): string => text.replace(deceptive, nameOf);

/**
 * Returns a text about which a person must decide, in a form that hides nothing. Does the same as `visibleText`, and also replaces
 * long white space by a note with its length, because long white space could hide the text after it.
 */
export const visible = (text: string): string =>
  visibleText(text)
    .replace(emptyLines, (space) => `\n[${space.split('\n').length - 2} empty lines]\n`)
    .replace(longSpace, (space) => `[${space.length} spaces]`);
