/** Shows texts of agents so that a person sees every character that runs. */

/**
 * Characters that reorder the text around them, that draw nothing, or that act on a terminal. Joiners and variation selectors stay in
 * emoji. Tabs and newlines stay.
 */
const deceptive =
  /(?![\t\n])\p{Cc}|(?!\u200d)\p{Cf}|[\p{Zl}\p{Zp}\u115f\u1160\u2800\u3164\uffa0]|(?!\ufe0f)\p{Variation_Selector}|(?<!\p{Emoji})\ufe0f|(?<!\p{Extended_Pictographic}(?:\ufe0f|\p{Emoji_Modifier})?)\u200d/gu;

const nameOf = (char) => `[U+${char.codePointAt(0).toString(16).toUpperCase().padStart(4, '0')}]`;

/** Returns the text with the name of each deceptive character in its place, such as `[U+202E]`. */
export const visible = (text) => text.replace(deceptive, nameOf);
