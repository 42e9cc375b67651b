/** What `q` means: words that must all be found in a run's title, skill or the beginning of its prompt. */
import type { Conditions } from './conditions.ts';

/** Words beyond these are not looked for. */
const maxWords = 10;
/** Letters of a word beyond these are not compared; as in `search_parts`. */
const maxLetters = 40;

/**
 * `exact`: each word begins a word of title, skill or prompt, in any case, or stands anywhere in title or skill.
 * `similar`: each is a word of title or skill but for one letter that is wrong, missing, too many or exchanged with the
 * next one, or from six letters on the beginning of such a word; so that a slip of the pen finds something.
 */
export type SearchTier = 'exact' | 'similar';

/** Null where nothing is searched for. Punctuation parts words, as in `search_words`; without a letter or digit nothing is found. */
export function wordsOf(q: string | undefined): string[] | null {
  if (!q?.trim()) return null;
  return [...new Set(q.toLowerCase().match(/[\p{L}\p{M}\p{N}]+/gu) ?? [])].slice(0, maxWords);
}

/** A `tsquery` over `run_search.parts`, with `@` in place of the mark of a team's week. */
export type SearchTemplate = string;

export function templateOf(words: readonly string[], tier: SearchTier): SearchTemplate {
  const waysOf = tier === 'exact' ? exactWays : similarWays;
  return words.map((word) => `(${waysOf([...word].slice(0, maxLetters)).join(' | ')})`).join(' & ');
}

/** In which ways a run may have the word. Words hold letters and digits only: nothing to escape. */
function exactWays(letters: readonly string[]): string[] {
  const word = letters.join('');
  // One letter begins too many words to be a beginning, and two are in too many titles.
  if (letters.length === 1) return [`'@=${word}'`];
  return letters.length === 2 ? [`'@=${word}':*`] : [`'@=${word}':*`, `'@~${word}':*`];
}

/** Two words that differ by one slip have something in common once a letter is left out of one of them, or of both. */
function similarWays(letters: readonly string[]): string[] {
  const word = letters.join('');
  if (letters.length < 4 || /\p{Nd}/u.test(word)) return exactWays(letters);
  const shortened = letters.map((_, left) => letters.filter((_, at) => at !== left).join(''));
  return [...new Set([word, ...shortened])].map((part) => `'@?${part}'${letters.length < 6 ? '' : ':*'}`);
}

/** The `tsquery` of the template for a week, which is an SQL expression. */
export const queryOfWeek = (template: string, week: string): string =>
  `replace(${template}, '@', search_mark($1, ${week}))::tsquery`;

/** Condition on `run_search s`. */
export const matchOf = ({ bind }: Conditions, template: SearchTemplate): string =>
  `s.parts @@ ${queryOfWeek(bind(template), 'search_week(s.updated_hour)')}`;
