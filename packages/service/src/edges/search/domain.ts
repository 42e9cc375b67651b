import { routes } from '@runyard/contract/routes';
import { SearchKind, type SearchResult } from '@runyard/contract/team/search';
import { isAtLeast } from '@runyard/contract/wire/access';
import type { Domain } from '../../platform/domain.ts';
import type { Search, SearchRequest } from '../../platform/search.ts';
import type { Database } from '../../platform/store/database/database.ts';
import { serve } from '../../team/access/serve.ts';
import { readQuery } from './query.ts';

/** The search over the things of all domains that registered one. */
export const searchDomain = ({ db }: { readonly db: Database }, domains: readonly Domain[]): Domain => ({
  name: 'search',
  routes: () => {
    const all = domains.flatMap(({ search }) => search ?? []);
    return [
      serve(routes.search, async ({ query: { q, kind: kinds, limit }, principal }) => {
        const searches = all.filter(({ kind }) => kinds?.includes(kind) ?? true);
        const isPerson = principal.creator.kind === 'user';
        const request: SearchRequest = {
          ...readQuery(q),
          teamId: principal.teamId,
          personUid: isPerson ? principal.creator.uid : null,
          isAdministrator: isPerson && isAtLeast(principal.role, 'admin'),
          limit,
        };
        // A team has more runs than anything else. Two connections to the database are enough: a palette sends a request for each letter.
        const [runs, others] = await Promise.all([
          findInTurn(db, searches.filter(isOfRuns), request),
          findInTurn(
            db,
            searches.filter((search) => !isOfRuns(search)),
            request,
          ),
        ]);
        return { results: inOrder([...runs, ...others], request.ids) };
      }),
    ];
  },
});

const isOfRuns = ({ kind }: Search): boolean => kind === 'run';

async function findInTurn(db: Database, searches: readonly Search[], request: SearchRequest): Promise<SearchResult[]> {
  const results: SearchResult[] = [];
  for (const { kind, find } of searches)
    results.push(...(await find(db, request)).map((thing) => ({ kind, ...thing })));
  return results;
}

/** Returns the things with an id of the query first, in the order of these ids, and the others by kind. Keeps the order within a kind. */
function inOrder(results: readonly SearchResult[], ids: readonly string[]): SearchResult[] {
  const placeOf = ({ is_id_match, uid, kind }: SearchResult): number =>
    is_id_match ? ids.indexOf(uid) : ids.length + SearchKind.options.indexOf(kind);
  return [...results].sort((a, b) => placeOf(a) - placeOf(b));
}
