import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useClient, useSession } from '../../api/session.ts';
import type { Search } from '../../frame/search.ts';
import { numberText } from '../../parts/format.ts';
import { filtersOf, queryKeyOf, type View } from './views.ts';

/** Shows the views as tabs: those that everyone has, then the saved ones of the person. */
export function Views({ views, search }: { views: readonly View[]; search: Search }) {
  const current = queryKeyOf(search);
  return (
    <nav className="tabs" aria-label="Views">
      {views.map((view) => (
        <Link
          key={view.name}
          to="/runs"
          search={view.search}
          {...(queryKeyOf(view.search) === current ? { 'aria-current': 'page' as const } : {})}
        >
          {view.name}
          {view.isCounted && <Count view={view} />}
        </Link>
      ))}
    </nav>
  );
}

/** Shows how many runs a view has; nothing where it has none. */
function Count({ view }: { view: View }) {
  const client = useClient();
  const { team } = useSession();
  const { data } = useQuery({
    queryKey: ['counts', team.uid, 'view', view.name, queryKeyOf(view.search)],
    queryFn: async () => await client.countRuns({ query: filtersOf(view.search) }),
    refetchInterval: 15_000,
  });
  if (data === undefined || data.total === 0) return null;
  return (
    <span className={`n ${view.asks ? 'ask' : ''}`}>{`${numberText(data.total)}${data.is_exact ? '' : '+'}`}</span>
  );
}
