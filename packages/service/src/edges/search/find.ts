import { SearchKind, type SearchResult } from '@runyard/contract/team/search';
import type { Search, SearchRequest } from '../../platform/search.ts';
import type { Database } from '../../platform/store/database/database.ts';

/**
 * Asks all searches. Returns the things with an id of the request first, in the order of these ids, and the others by kind. Teams have more
 * runs than other things, so the search of runs executes in parallel with the other searches. The search takes two connections to the
 * database, not one for each kind, because the palette sends a request for each letter.
 */
export async function findThings(
  db: Database,
  searches: readonly Search[],
  request: SearchRequest,
): Promise<SearchResult[]> {
  const isOfRuns = ({ kind }: Search): boolean => kind === 'run';
  const [runs, others] = await Promise.all([
    findInTurn(db, searches.filter(isOfRuns), request),
    findInTurn(
      db,
      searches.filter((search) => !isOfRuns(search)),
      request,
    ),
  ]);
  const placeOf = ({ is_id_match, uid, kind }: SearchResult): number =>
    is_id_match ? request.ids.indexOf(uid) : request.ids.length + SearchKind.options.indexOf(kind);
  return [...runs, ...others].sort((a, b) => placeOf(a) - placeOf(b));
}

async function findInTurn(db: Database, searches: readonly Search[], request: SearchRequest): Promise<SearchResult[]> {
  const results: SearchResult[] = [];
  for (const { kind, find } of searches)
    results.push(...(await find(db, request)).map((thing) => ({ kind, ...thing })));
  return results;
}
