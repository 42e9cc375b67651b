import { firstPart } from '@runyard/contract/wire/shorten';

/** Characters (UTF-16 units) of a title that is taken from a prompt. */
const maxTitleLength = 80;

/**
 * Returns the first line of the prompt that has text, without the signs of a Markdown heading or code block, cut at 80 characters but
 * never inside a surrogate pair.
 */
export function titleOf(prompt: string): string {
  // A prompt may be one line of a megabyte, so read only the beginning.
  const line =
    prompt
      .trimStart()
      .replace(/^(?:`{3,}|~{3,})[^\r\n`]{0,80}[\r\n]\s*/, '')
      .replace(/^#{1,6}[ \t]+(?=\S)/, '')
      .slice(0, maxTitleLength + 1)
      .split(/[\r\n\u2028\u2029]/, 1)[0] ?? '';
  return firstPart(line, maxTitleLength).trimEnd();
}
