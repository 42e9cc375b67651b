/**
 * Texts that prompts, models, senders and file names bring. React writes them as text nodes, so they cannot become markup. What is left
 * are characters that mislead a reader: those that change the direction of writing, and those that nobody sees (Unicode Technical Report
 * 36, "Bidirectional Text Spoofing").
 */

/** All but tab and line ends, the joiner of emoji (U+200D) and the selector of their coloured form (U+FE0F). */
const misleading =
  /(?!\t|\n|\r|\u200d|\ufe0f)(?:[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Variation_Selector}\u115f\u1160\u3164\uffa0]|\u034f|\u17b4|\u17b5)/gu;

/** Returns the text with a mark such as `⟨U+202E⟩` for each character that changes the direction of writing or is invisible. */
export function visibleText(text: string): string {
  return text.replace(misleading, (found) => {
    const code = found.codePointAt(0) ?? 0;
    return `⟨U+${code.toString(16).toUpperCase().padStart(4, '0')}⟩`;
  });
}
