import { visibleText } from '@runyard/contract/wire/visible';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useClient, useSession } from '../../api/session.ts';
import { parseSearch, type Search } from '../../frame/search.ts';
import { numberText } from '../../parts/format.ts';
import { Icon } from '../../parts/icon.tsx';
import { showToast } from '../../parts/toast.tsx';
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
          activeOptions={{ exact: true }}
          {...(queryKeyOf(view.search) === current ? { 'aria-current': 'page' as const } : {})}
        >
          {view.name}
          {view.isCounted && <Count view={view} />}
        </Link>
      ))}
      <Saved current={current} />
    </nav>
  );
}

/** Shows the views that the person has saved. */
function Saved({ current }: { current: string }) {
  const client = useClient();
  const { team } = useSession();
  const queries = useQueryClient();
  const key = ['views', team.uid];
  const { data } = useQuery({
    queryKey: key,
    queryFn: async () => (await client.listSavedViews({})).saved_views,
    staleTime: 60_000,
  });
  const remove = async (viewId: string, name: string, path: string) => {
    await client.deleteSavedView({ params: { viewId } });
    await queries.invalidateQueries({ queryKey: key });
    showToast(`Deleted the view ${name}`, () => {
      void client.createSavedView({ body: { name, path } }).then(() => queries.invalidateQueries({ queryKey: key }));
    });
  };
  return (data ?? []).map(({ id, name, path }) => {
    const search = parseSearch(URL.parse(path, location.origin)?.search ?? '');
    const isCurrent = queryKeyOf(search) === current;
    return (
      <span key={id} className="row">
        <Link
          to="/runs"
          search={search}
          activeOptions={{ exact: true }}
          {...(isCurrent ? { 'aria-current': 'page' as const } : {})}
        >
          {visibleText(name)}
        </Link>
        {isCurrent && (
          <button
            type="button"
            className="btn ghost sm icon"
            aria-label={`Delete the view ${name}`}
            onClick={() => void remove(id, name, path)}
          >
            <Icon name="x" small />
          </button>
        )}
      </span>
    );
  });
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
