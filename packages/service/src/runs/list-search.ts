/** What `q` means: words that must all be found in a run's title, skill or the beginning of its prompt. */
import type { Queryable, Statement } from '../store/database.ts';
import type { Conditions } from './list-conditions.ts';

/** Words beyond these are not looked for. */
const maxWords = 10;

/**
 * `exact`: each word begins a word of title, skill or prompt, in any case, or stands anywhere in title or skill.
 * `similar`: each is like a word of title or skill (pg_trgm), so that a slip of the pen finds something.
 */
export type SearchTier = 'exact' | 'similar';

export interface SearchWords {
  readonly tier: SearchTier;
  /** Condition on `run_search s`. */
  condition(conditions: Conditions): string;
  /** `run_id` and `updated_hour` of the team's matches, by the indexes of `run_search`. */
  select(conditions: Conditions): string;
}

/** Null where nothing is searched for. Punctuation parts words, as in `run_words`; without a letter or digit nothing is found. */
export function wordsOf(q: string | undefined): string[] | null {
  if (!q?.trim()) return null;
  return [...new Set(q.toLowerCase().match(/[\p{L}\p{M}\p{N}]+/gu) ?? [])].slice(0, maxWords);
}

export function searchFor(words: readonly string[], tier: SearchTier): SearchWords {
  const condition = ({ bind }: Conditions) =>
    words.map((word) => (tier === 'exact' ? exactWord(word, bind) : similarWord(word, bind))).join(' AND ');
  return {
    tier,
    condition,
    select: (conditions) =>
      `SELECT s.run_id, s.updated_hour FROM run_search s WHERE s.team_id = $1 AND ${condition(conditions)}`,
  };
}

function exactWord(word: string, bind: Conditions['bind']): string {
  const length = [...word].length;
  // One letter begins too many words to be a beginning. Words hold letters and digits only: nothing to escape.
  const beginning = `s.words @@ to_tsquery('simple', ${bind(length > 1 ? `'${word}':*` : `'${word}'`)})`;
  // A trigram index cannot look up less than three characters.
  return length < 3 ? beginning : `(${beginning} OR s.heading ILIKE ${bind(`%${word}%`)})`;
}

/** `<%` by `pg_trgm.word_similarity_threshold`, which `prepareSession` sets. */
const similarWord = (word: string, bind: Conditions['bind']): string =>
  [...word].length < 4 ? exactWord(word, bind) : `${bind(word)}::text <% s.heading`;

/** How many rows `run_search` had when it was last analysed; below 0: never. */
const readSize: Statement = {
  name: 'read_search_size',
  text: `SELECT reltuples AS rows FROM pg_class WHERE oid = 'run_search'::regclass`,
};

/** The share of all runs, 0 to 1, that PostgreSQL expects to match, from its statistics: it decides the plan, never the result. */
export async function expectedShare(db: Queryable, teamId: string, words: SearchWords): Promise<number> {
  const values: unknown[] = [teamId];
  const bind = (value: unknown) => `$${values.push(value)}`;
  const text = words.select({ joins: [], texts: [], values, bind });
  const [[plan], [size]] = await Promise.all([
    db.query<{ 'QUERY PLAN': [{ Plan: { 'Plan Rows': number } }] }>(`EXPLAIN (FORMAT JSON) ${text}`, values),
    db.query<{ rows: number }>(readSize),
  ]);
  return (plan?.['QUERY PLAN'][0].Plan['Plan Rows'] ?? 0) / Math.max(1, size?.rows ?? 0);
}
