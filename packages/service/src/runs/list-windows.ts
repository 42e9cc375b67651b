/**
 * Where a search looks: first among the latest runs (or the oldest, as the list is sorted), then among eight times as
 * many, and so on. The index knows the days of its matches, so what lies outside costs nothing.
 */
import type { Queryable } from '../store/database.ts';
import type { PageRequest } from './list-query.ts';
import type { SearchTier } from './list-search.ts';

/** Values of `run_search.days`; null: all. */
export type Days = readonly number[] | null;

/** What PostgreSQL expects of a search: shares of all runs, 0 to 1. */
export interface Expectation {
  /** Of each word. */
  readonly shares: readonly number[];
  /** Of all words together, where they had nothing to do with each other. */
  readonly share: number;
}

/** How many runs are looked at to tell how far back a look must reach; beyond it is reckoned. */
const sampledRuns = 5000;
/** The first look reaches over so many runs at least and at most. */
const nearestLook = 1000;
const farthestLook = 40_000;
/** Matches are not evenly spread: more than are wanted should lie within the first look. */
const surplus = 2;
/** Each next look reaches over so many times as many. */
const wider = 8;

/**
 * In the order in which to look; one that gives a full page is enough, because whatever lies outside comes later in the
 * list. For words that are only similar this is not all of a great many runs.
 */
export async function windowsFor(
  db: Queryable,
  { teamId, query, position, count }: Omit<PageRequest, 'search'>,
  tier: SearchTier,
  { share }: Expectation,
): Promise<readonly Days[]> {
  if (query.sort_by !== 'updated_at') return [null];
  const reach = Math.min(farthestLook, Math.max(nearestLook, (surplus * count) / share));
  const sampled = Math.ceil(Math.min(reach, sampledRuns));
  const isDown = query.sort_order === 'desc';
  const direction = isDown ? 'DESC' : 'ASC';
  const after = position ? `AND (updated_at, id) ${isDown ? '<' : '>'} ($5::timestamptz, $6::uuid)` : '';
  const days = (times: string) =>
    isDown
      ? `run_days_between($1, greatest(max(updated_at) - (max(updated_at) - min(updated_at)) * ${times}, '2000-01-01'), max(updated_at) + interval '1 day')`
      : `run_days_between($1, min(updated_at) - interval '1 day', least(min(updated_at) + (max(updated_at) - min(updated_at)) * ${times}, now() + interval '1 day'))`;
  const [row] = await db.query<{ found: number; near: number[]; wide: number[]; widest: number[] }>(
    `SELECT count(*)::int AS found, ${days('$3::float8')} AS near, ${days('($3::float8 * $4::float8)')} AS wide,
       ${days('($3::float8 * $4::float8 * $4::float8)')} AS widest
     FROM (SELECT updated_at FROM runs WHERE team_id = $1 ${after} ORDER BY updated_at ${direction}, id ${direction} LIMIT $2) sample`,
    [teamId, sampled, reach / sampled, wider, ...(position ? [position.value, position.id] : [])],
  );
  if (!row || row.found < sampled) return [null];
  // To be like a word is costly to tell: not of all of a great many runs.
  if (tier === 'similar') return [row.near, row.wide];
  // Each look collects the beginnings of words anew: for what is expected to be rare, few looks.
  return reach === farthestLook ? [row.wide, null] : [row.near, row.wide, row.widest, null];
}
