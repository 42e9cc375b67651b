/** What `q` means: words that must all be found in a run's title, skill or the beginning of its prompt. */
import type { Queryable, Statement } from '../store/database.ts';
import type { Conditions } from './list-conditions.ts';
import type { Days, Expectation } from './list-windows.ts';

/** A search that is expected to match a greater share of the runs tries its luck with the first runs of the list. */
export const commonShare = 0.03;

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
  /**
   * `run_id` and `updated_hour` of the team's matches of these days, by the index of `run_search`. The two rarest words
   * are looked up; the others, and one that is expected in many runs, are looked for in what was found.
   */
  select(conditions: Conditions, days: Days, expected: Expectation): string;
}

/** Null where nothing is searched for. Punctuation parts words, as in `run_words`; without a letter or digit nothing is found. */
export function wordsOf(q: string | undefined): string[] | null {
  if (!q?.trim()) return null;
  return [...new Set(q.toLowerCase().match(/[\p{L}\p{M}\p{N}]+/gu) ?? [])].slice(0, maxWords);
}

export function searchFor(words: readonly string[], tier: SearchTier): SearchWords {
  const waysOf = tier === 'exact' ? exactWays : similarWays;
  const any = (ways: readonly string[]) => `(${ways.join(' OR ')})`;
  return {
    tier,
    condition: ({ bind }) => words.map((word) => any(waysOf(word, bind))).join(' AND '),
    select: ({ bind }, days, { shares }) => {
      const byRarity = words
        .map((word, index) => ({ word, share: shares[index] ?? 0 }))
        .sort((a, b) => a.share - b.share);
      const [first, second] = byRarity;
      const lookedUp = byRarity.filter((each) => each === first || (each === second && each.share <= commonShare));
      const within = days ? [`s.days && ${bind(days)}::integer[]`] : [];
      // Each combination of ways is one look-up, in which the index joins them.
      const combinations = lookedUp.reduce<string[][]>(
        (known, { word }) => waysOf(word, bind).flatMap((way) => known.map((ways) => [...ways, way])),
        [within],
      );
      const others = byRarity
        .filter((each) => !lookedUp.includes(each))
        .map(({ word }) => `${any(waysOf(word, bind))} IS TRUE`);
      const texts = ['s.team_id = $1', any(combinations.map((ways) => `(${ways.join(' AND ')})`)), ...others];
      return `SELECT s.run_id, s.updated_hour FROM run_search s WHERE ${texts.join(' AND ')}`;
    },
  };
}

type Ways = (word: string, bind: Conditions['bind']) => string[];

/** In which ways a run may have the word. */
const exactWays: Ways = (word, bind) => {
  const length = [...word].length;
  // One letter begins too many words to be a beginning. Words hold letters and digits only: nothing to escape.
  const beginning = `s.words @@ to_tsquery('simple', ${bind(length > 1 ? `'${word}':*` : `'${word}'`)})`;
  // A trigram index cannot look up less than three characters.
  return length < 3 ? [beginning] : [beginning, `s.heading ILIKE ${bind(`%${word}%`)}`];
};

/** `<%` by `pg_trgm.word_similarity_threshold`, which `prepareSession` sets. */
const similarWays: Ways = (word, bind) =>
  [...word].length < 4 ? exactWays(word, bind) : [`${bind(word)}::text <% s.heading`];

/** How many rows `run_search` had when it was last analysed; below 0: never. */
const readSize: Statement = {
  name: 'read_search_size',
  text: `SELECT reltuples AS rows FROM pg_class WHERE oid = 'run_search'::regclass`,
};

/** What PostgreSQL expects of each word, from its statistics: it decides the time, never the result. */
export async function expectMatches(
  db: Queryable,
  teamId: string,
  words: readonly string[],
  tier: SearchTier,
): Promise<Expectation> {
  const values: unknown[] = [teamId];
  const bind = (value: unknown) => `$${values.push(value)}`;
  const selects = words.map((word) => {
    const condition = searchFor([word], tier).condition({ joins: [], texts: [], values, bind });
    return `SELECT FROM run_search s WHERE s.team_id = $1 AND ${condition}`;
  });
  const [[explained], [size]] = await Promise.all([
    db.query<{ 'QUERY PLAN': [{ Plan: PlanNode }] }>(`EXPLAIN (FORMAT JSON) ${selects.join(' UNION ALL ')}`, values),
    db.query<{ rows: number }>(readSize),
  ]);
  const plan = explained?.['QUERY PLAN'][0].Plan;
  const plans = words.length === 1 ? [plan] : (plan?.Plans ?? []);
  const shares = plans.map((each) => Math.min(1, (each?.['Plan Rows'] ?? 0) / Math.max(1, size?.rows ?? 0)));
  return { shares, share: shares.reduce((product, share) => product * share, 1) };
}

interface PlanNode {
  readonly 'Plan Rows': number;
  readonly Plans?: readonly PlanNode[];
}
