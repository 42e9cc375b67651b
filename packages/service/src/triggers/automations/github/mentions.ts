/** Finds the people and teams that a text on GitHub mentions. */

/** GitHub accepts texts of at most 65,536 characters. */
const maxLength = 70_000;
const maxMentions = 100;

/** Code, and comments that GitHub does not show. */
const hidden = [/^ {0,3}(```|~~~)[\s\S]*?(?:^ {0,3}\1|$(?![\s\S]))/gm, /`[^`\n]*`/g, /<!--[\s\S]*?(?:-->|$)/g];
/** A line that quotes somebody, also one in a list. */
const quoted = /^[ \t]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+){0,9}>.*$/gm;

/**
 * Returns logins and teams (`org/team`) that the text mentions with @, in lower case. Mentions in code, quoted lines and hidden comments do
 * not count, and mentions of the writer do not either: a program that quotes the request in its answer would otherwise ask itself again.
 * `writer`: the login of the author of the text.
 */
export function mentionsIn(text: string, writer = ''): string[] {
  const prose = [...hidden, quoted].reduce((rest, pattern) => rest.replaceAll(pattern, ' '), text.slice(0, maxLength));
  const found = prose.matchAll(/(?<![\w@/.-])@([a-z\d][a-z\d-]{0,38}(?:\/[a-z\d][\w-]{0,99})?)(?![\w])/gi);
  const names = [...found].slice(0, maxMentions).map(([, name = '']) => name.toLowerCase());
  return [...new Set(names)].filter((name) => name !== writer.toLowerCase());
}
