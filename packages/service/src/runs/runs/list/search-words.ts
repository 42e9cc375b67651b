/** Parses `q`: the id of a run, or words. A run must have all the words in its title, its skill or the beginning of its prompt. */
import type { ListRunsQuery } from '@runyard/contract/runs/run-list';
import { addColumnFilters, changedAfter, joinFacets } from './filters.ts';
import { orderBy, orderOf } from './order.ts';
import { type Conditions, type PageQuery, type PageRequest, startConditions } from './page-query.ts';
import { partsOf } from './parts.ts';

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

/** A `tsquery` over `run_search.parts`, in which `@` stands for the mark of team and week. */
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
 * If two words differ by one mistake, one can remove at most one letter from each so that they are equal. The index has these shortened
 * words as terms.
 */
function similarWays(letters: readonly string[]): string[] {
  const word = letters.join('');
  if (letters.length < 4 || /\p{Nd}/u.test(word)) return exactWays(letters);
  const shortened = letters.map((_, left) => letters.filter((_, at) => at !== left).join(''));
  return [...new Set([word, ...shortened])].map((part) => `'@?${part}'${letters.length < 6 ? '' : ':*'}`);
}

/** Returns the `tsquery` of the template (an SQL expression) for a week (an SQL expression). */
const queryOfWeek = (template: string, week: string): string =>
  `replace(${template}, '@', search_mark($1, ${week}))::tsquery`;

/** Returns an SQL condition that is true if the row `s` of `run_search` matches the template. */
export const matchOf = ({ bind }: Conditions, template: SearchTemplate): string =>
  `s.parts @@ ${queryOfWeek(bind(template), 'search_week(s.updated_hour)')}`;

/**
 * Returns SQL for the weeks of a list, with the columns `week` and `query`. `from` and `to`: SQL for times before and after the last
 * changes of all runs of the list.
 */
const weeksOf = (template: string, from: readonly string[], to: readonly string[]): string =>
  `SELECT week, ${queryOfWeek(template, 'week')} AS query FROM generate_series(
    search_week(greatest(${['(SELECT min(updated_at) FROM runs WHERE team_id = $1)', ...from].join(', ')})),
    search_week(least(${['(SELECT max(updated_at) FROM runs WHERE team_id = $1)', ...to].join(', ')}))) week`;

/** Returns SQL for the ids of the runs that have the words, in any order. */
export function foundByWords(conditions: Conditions, query: ListRunsQuery, template: SearchTemplate): string {
  const { bind } = conditions;
  return `SELECT s.run_id AS id FROM (${weeksOf(bind(template), changedAfter(conditions, query), [])}) w
    CROSS JOIN LATERAL (SELECT s.run_id FROM run_search s WHERE s.parts @@ w.query AND s.team_id = $1 OFFSET 0) s`;
}

/**
 * Strategy for a search if no probe has found the page: looks for the words week by week, in the order of the list, until the page is full.
 * The index of `run_search` stores the words of one team and one week next to each other.
 */
export function searchByWeekQuery(
  { teamId, query, position, count }: PageRequest,
  template: SearchTemplate,
): PageQuery {
  const conditions = startConditions(teamId);
  const { bind, texts } = conditions;
  const order = orderOf(query);
  joinFacets(conditions, query);
  addColumnFilters(conditions, query);
  const byChange = query.sort_by === 'updated_at';
  const parts = partsOf(conditions, query, order, position, 'm.updated_hour');
  texts.push(`(${parts.map((part) => part.join(' AND ') || 'true').join(' OR ')})`);

  const last = position && byChange ? `${bind(position.value)}::timestamptz` : null;
  const isDown = query.sort_order === 'desc';
  const from = changedAfter(conditions, query);
  const to: string[] = [];
  if (last) (isDown ? to : from).push(last);
  const hours = last ? `AND s.updated_hour ${isDown ? '<=' : '>='} run_hour(${last})` : '';

  const limit = bind(count);
  const direction = order.direction;
  // OFFSET 0 makes the planner keep the written order of joins, because it cannot know how many runs of a week have the words.
  const text = `SELECT r.id, r.sort_value FROM (
      ${weeksOf(bind(template), from, to)} ORDER BY week ${direction}
    ) w CROSS JOIN LATERAL (
      SELECT r.id, r.sort_value FROM (
        SELECT s.run_id, s.updated_hour FROM run_search s WHERE s.parts @@ w.query AND s.team_id = $1 ${hours}
        ${byChange ? `ORDER BY s.updated_hour ${direction}` : ''} OFFSET 0
      ) m CROSS JOIN LATERAL (
        SELECT r.id, ${order.column} AS sort_value FROM runs r ${conditions.joins.join(' ')}
        WHERE r.id = m.run_id AND ${texts.join(' AND ')} OFFSET 0
      ) r
      ${byChange ? `ORDER BY m.updated_hour ${direction}, r.sort_value ${direction}, r.id ${direction} LIMIT ${limit}` : 'OFFSET 0'}
    ) r
    ${byChange ? `ORDER BY w.week ${direction}, r.sort_value ${direction}, r.id ${direction}` : orderBy(order, 'r.')} LIMIT ${limit}`;
  return { text, values: conditions.values };
}
