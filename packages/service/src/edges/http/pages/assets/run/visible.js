/** Shows texts of agents so that a person sees every character that runs. */

/**
 * Characters that reorder the text around them, that draw nothing, or that act on a terminal. Tabs and newlines stay, variation selectors in
 * emoji, and joiners behind a character that is not ASCII: scripts and emoji need them.
 */
const deceptive =
  /(?![\t\n])\p{Cc}|(?!\u200c|\u200d|\ufe0f)\p{Default_Ignorable_Code_Point}|[\p{Zl}\p{Zp}\u2800]|(?<!\p{Emoji})\ufe0f|(?<!\P{ASCII})[\u200c\u200d]/gu;

const nameOf = (char) => `[U+${char.codePointAt(0).toString(16).toUpperCase().padStart(4, '0')}]`;

/** Returns the text with the name of each deceptive character in its place, such as `[U+202E]`. */
export const visible = (text) => text.replace(deceptive, nameOf);
