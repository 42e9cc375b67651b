/** Finds the words of code, so that a page can colour them. The code may be hostile. */
import { inThread } from './jobs.ts';

/** Kinds of words that have a colour. */
export type WordKind = 'comment' | 'keyword' | 'name' | 'number' | 'string' | 'title';

/** A part of a line of code; without a kind, it has no colour. */
export type CodeWord = readonly [text: string, kind?: WordKind];

/** Maximum number of characters of code that are coloured together. */
const maxLength = 300_000;

/**
 * Returns the words of each line of each text. `name`: name of the file of which the texts are parts. Returns undefined if the language of
 * the file is unknown, or if the texts are too long or take too long; the page then shows them without colours.
 */
export async function highlight(
  name: string,
  texts: readonly string[],
  signal: AbortSignal,
): Promise<CodeWord[][][] | undefined> {
  if (texts.reduce((sum, { length }) => sum + length, 0) > maxLength) return undefined;
  return (await inThread({ kind: 'code', name, texts }, signal)) as CodeWord[][][] | undefined;
}
