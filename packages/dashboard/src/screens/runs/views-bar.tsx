import { visibleText } from '@runyard/contract/wire/visible';
import { useQueryClient } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useRunCount } from '../../api/lists.ts';
import { useRead } from '../../api/read.ts';
import { useClient, useSession } from '../../api/session.ts';
import { parseSearch, type Search } from '../../frame/search.ts';
import { useAttempts } from '../../parts/attempt.ts';
import { Count, Row, Tabs } from '../../parts/blocks.tsx';
import { Button } from '../../parts/controls.tsx';
import { numberText } from '../../parts/format.ts';
import { Problem } from '../../parts/problem.tsx';
import { showToast } from '../../parts/toast.tsx';
import { filtersOf, queryKeyOf, type View } from './views.ts';

/** Shows the views as tabs: first the default views, then the saved views of the person. */
export function Views({ views, search }: { views: readonly View[]; search: Search }) {
  const current = queryKeyOf(search);
  return (
    <Tabs aria-label="Views">
      {views.map((view) => (
        <Link
          key={view.name}
          to="/runs"
          search={view.search}
          activeOptions={{ exact: true }}
          aria-current={queryKeyOf(view.search) === current ? 'page' : undefined}
        >
          {view.name}
          {view.isCounted && <ViewCount view={view} />}
        </Link>
      ))}
      <Saved current={current} />
    </Tabs>
  );
}

/** Shows the views that the person has saved. */
function Saved({ current }: { current: string }) {
  const client = useClient();
  const { team } = useSession();
  const queries = useQueryClient();
  const key = ['views', team.uid];
  const { data } = useRead(key, async (client) => (await client.listSavedViews({})).saved_views, { staleTime: 60_000 });
  const { error, attempt } = useAttempts();
  const change = (work: () => Promise<unknown>) =>
    attempt(async () => {
      await work();
      await queries.invalidateQueries({ queryKey: key });
    });
  const remove = async (viewId: string, name: string, path: string) => {
    if (await change(() => client.deleteSavedView({ params: { viewId } })))
      showToast(`Deleted the view ${name}`, () => void change(() => client.createSavedView({ body: { name, path } })));
  };
  const tabs = (data ?? []).map(({ id, name, path }) => {
    const search = parseSearch(URL.parse(path, location.origin)?.search ?? '');
    const isCurrent = queryKeyOf(search) === current;
    return (
      <Row key={id} as="span">
        <Link to="/runs" search={search} activeOptions={{ exact: true }} aria-current={isCurrent ? 'page' : undefined}>
          {visibleText(name)}
        </Link>
        {isCurrent && (
          <Button
            kind="ghost"
            small
            icon="x"
            aria-label={`Delete the view ${visibleText(name)}`}
            onClick={() => void remove(id, name, path)}
          />
        )}
      </Row>
    );
  });
  return (
    <>
      {tabs}
      <Problem error={error} />
    </>
  );
}

/** Shows the number of runs that a view selects; shows nothing if the view selects no runs. */
function ViewCount({ view }: { view: View }) {
  const { data } = useRunCount(filtersOf(view.search));
  if (data === undefined || data.total === 0) return null;
  return <Count asks={view.asks}>{`${numberText(data.total)}${data.is_exact ? '' : '+'}`}</Count>;
}
