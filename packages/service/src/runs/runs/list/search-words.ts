/** Parses `q`: the id of a run, or words. A run must have all the words in its title, its skill or the beginning of its prompt. */
import type { Parameters } from './filters.ts';

/** Maximum number of words of `q`; further words are ignored. */
const maxWords = 10;
/** Maximum number of letters of a word; further letters are ignored, as in the SQL function `search_parts`. */
const maxLetters = 40;

/** Says how the words of a search are compared with the words of a run. */
export type SearchTier =
  /**
   * Each word of the search is the beginning of a word of title, skill or prompt, or any part of title or skill. Upper and lower case are
   * equal.
   */
  | 'exact'
  /**
   * Each word of the search is a word of title or skill with one mistake: a wrong, missing or additional letter, or two swapped letters. A
   * word of at least six letters may also be the beginning of a word with one mistake.
   */
  | 'similar';

const runIdOrUrl = /^(?:\S*\/runs\/)?([0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12})\/?(?:[?#]\S*)?$/i;

/** Returns the id if `q` is the complete id of a run or the URL of its page. */
export const runIdIn = (q: string | undefined): string | undefined => runIdOrUrl.exec(q?.trim() ?? '')?.[1];

/**
 * Returns the words of `q`, separated by punctuation as in `search_words`; an empty list if `q` has no letter or digit, so that the search
 * finds nothing; null if there is no `q`.
 */
export function wordsOf(q: string | undefined): string[] | null {
  if (!q?.trim()) return null;
  return [...new Set(q.toLowerCase().match(/[\p{L}\p{M}\p{N}]+/gu) ?? [])].slice(0, maxWords);
}

/** A `tsquery` over `run_search.parts`. In it, `@` is a placeholder for the mark of the team. */
export type SearchTemplate = string;

/** Returns a template that a run matches if it has all words. */
export function templateOf(words: readonly string[], tier: SearchTier): SearchTemplate {
  const waysOf = tier === 'exact' ? exactWays : similarWays;
  return words.map((word) => `(${waysOf([...word].slice(0, maxLetters)).join(' | ')})`).join(' & ');
}

/**
 * Returns the index terms of a run that may contain the word. Words have only letters and digits, so no character needs escaping.
 */
function exactWays(letters: readonly string[]): string[] {
  const word = letters.join('');
  // Do not look for words that begin with one given letter, or for titles that contain two given letters, because there are too many.
  if (letters.length === 1) return [`'@=${word}'`];
  return letters.length === 2 ? [`'@=${word}':*`] : [`'@=${word}':*`, `'@~${word}':*`];
}

/**
 * If two words differ by one mistake, they become equal when at most one letter is removed from each. The index has these shortened words
 * as terms.
 */
function similarWays(letters: readonly string[]): string[] {
  const word = letters.join('');
  if (letters.length < 4 || /\p{Nd}/u.test(word)) return exactWays(letters);
  const shortened = letters.map((_, left) => letters.filter((_, at) => at !== left).join(''));
  return [...new Set([word, ...shortened])].map((part) => `'@?${part}'${letters.length < 6 ? '' : ':*'}`);
}

/** SQL: the template as a `tsquery` for the words of the team. */
const queryOf = ({ bind }: Pick<Parameters, 'bind'>, template: SearchTemplate): string =>
  `replace(${bind(template)}, '@', search_mark($1))::tsquery`;

/** SQL: the ids of the team's runs that have the words, in the column `run_id`. */
export const listOfWords = (parameters: Pick<Parameters, 'bind'>, template: SearchTemplate): string =>
  `SELECT s.run_id FROM run_search s WHERE s.parts @@ ${queryOf(parameters, template)} AND s.team_id = $1`;

/** SQL: the run `r` has the words. Without `OFFSET 0`, the planner might read the index of the words for it. */
export const hasWords = (parameters: Pick<Parameters, 'bind'>, template: SearchTemplate): string =>
  `(SELECT s.parts @@ ${queryOf(parameters, template)} FROM run_search s WHERE s.run_id = r.id OFFSET 0)`;
