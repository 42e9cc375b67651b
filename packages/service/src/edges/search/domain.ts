import { routes } from '@runyard/contract/routes';
import { isAtLeast } from '@runyard/contract/wire/access';
import type { Domain } from '../../platform/domain.ts';
import type { Database } from '../../platform/store/database/database.ts';
import { serve } from '../../team/access/serve.ts';
import { findThings } from './find.ts';
import { readQuery } from './query.ts';

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
