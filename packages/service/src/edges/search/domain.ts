import { routes } from '@runyard/contract/routes';
import { SearchKind, type SearchResult } from '@runyard/contract/team/search';
import { isAtLeast } from '@runyard/contract/wire/access';
import type { Domain } from '../../platform/domain.ts';
import type { Search, SearchRequest } from '../../platform/search.ts';
import type { Database } from '../../platform/store/database/database.ts';
import { serve } from '../../team/access/serve.ts';
import { readQuery } from './query.ts';

/**
 * Runs all searches. The result begins with the things whose ids are in the request, in the order of these ids. The other things follow,
 * grouped by kind. Teams have more runs than other things, so the search of runs executes in parallel with the other searches. A request
 * uses only two connections to the database, and not one for each kind, because the search field of the dashboard sends a request for each
 * typed letter.
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

/** The search for things of all domains that have registered a search. */
export const searchDomain = ({ db }: { readonly db: Database }, domains: readonly Domain[]): Domain => ({
  name: 'search',
  routes: () => {
    const searches = domains.flatMap(({ search }) => search ?? []);
    return [
      serve(routes.search, async ({ query: { q, kind: kinds, limit }, principal }) => {
        const isPerson = principal.creator.kind === 'user';
        const wanted = searches.filter(({ kind }) => kinds?.includes(kind) ?? true);
        const results = await findThings(db, wanted, {
          ...readQuery(q),
          teamId: principal.teamId,
          personUid: isPerson ? principal.creator.uid : null,
          isAdministrator: isPerson && isAtLeast(principal.role, 'admin'),
          limit,
        });
        return { results };
      }),
    ];
  },
});
