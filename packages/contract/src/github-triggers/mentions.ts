/** Finds the people and teams that a text on GitHub mentions. */

/** GitHub accepts texts of at most 65,536 characters. */
const maxLength = 70_000;
const maxMentions = 100;

/** Returns logins and teams (`org/team`) that the text mentions with @, in lower case. Code in backticks mentions nobody. */
export function mentionsIn(text: string): string[] {
  const prose = text
    .slice(0, maxLength)
    .replaceAll(/^ {0,3}(```|~~~)[\s\S]*?(?:^ {0,3}\1|$(?![\s\S]))/gm, ' ')
    .replaceAll(/`[^`\n]*`/g, ' ');
  const found = prose.matchAll(/(?<![\w@/.-])@([a-z\d][a-z\d-]{0,38}(?:\/[a-z\d][\w-]{0,99})?)(?![\w])/gi);
  return [...new Set([...found].slice(0, maxMentions).map(([, name = '']) => name.toLowerCase()))];
}
