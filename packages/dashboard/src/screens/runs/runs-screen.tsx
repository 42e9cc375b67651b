import { getRouteApi, useNavigate } from '@tanstack/react-router';
import { lazy, type ReactNode, Suspense, useMemo, useRef, useState } from 'react';
import { useSession } from '../../api/session.ts';
import { useTeamStreamStatus } from '../../api/stream.ts';
import { Page } from '../../frame/page.tsx';
import { listOf, type Search } from '../../frame/search.ts';
import { More, Pad, Text } from '../../parts/blocks.tsx';
import { SkeletonRows } from '../../parts/empty.tsx';
import { countText } from '../../parts/format.ts';
import { useKeys } from '../../parts/keys.ts';
import { Live } from '../../parts/live.tsx';
import { Problem } from '../../parts/problem.tsx';
import { RoleLink } from '../../parts/role-button.tsx';
import { BulkBar } from './bulk-bar.tsx';
import { columns, readColumns } from './columns.tsx';
import { ListBar } from './list-bar.tsx';
import { RunTable } from './run-table.tsx';
import styles from './runs.module.css';
import { Strip } from './strip.tsx';
import { type Runs, useRuns } from './use-runs.ts';
import { type FilterName, filterNames, queryKeyOf, startOfToday, viewsOf } from './views.ts';
import { Views } from './views-bar.tsx';

const FilterDialog = lazy(async () => ({ default: (await import('./filter-dialog.tsx')).FilterDialog }));
const SaveViewDialog = lazy(async () => ({ default: (await import('./save-view-dialog.tsx')).SaveViewDialog }));
const Onboarding = lazy(async () => ({ default: (await import('./onboarding.tsx')).Onboarding }));
const NoMatch = lazy(async () => ({ default: (await import('./no-match.tsx')).NoMatch }));

const route = getRouteApi('/shell/runs');

/** Lists the runs of the team. Views select, for example, the runs that need a person, live runs or failed runs. */
export function RunsScreen() {
  const search: Search = route.useSearch();
  const navigate = useNavigate();
  const { person } = useSession();
  const status = useTeamStreamStatus();
  const today = useMemo(() => startOfToday(), []);
  const [open, setOpen] = useState<'filter' | 'save' | undefined>();
  const [shown, setShown] = useState(readColumns);
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set());
  const find = useRef<HTMLInputElement>(null);

  const mayEnter = () => {
    const main = document.getElementById('main');
    const hasFocus = document.activeElement?.closest('tbody') !== null && document.activeElement !== document.body;
    return (main?.scrollTop ?? 0) === 0 && selected.size === 0 && !hasFocus;
  };
  const runs = useRuns(search, mayEnter);
  const setSearch = (change: Search) => void navigate({ to: '/runs', search: { ...search, ...change } });
  useKeys([
    { key: '/', does: 'Search this list', run: () => find.current?.focus() },
    { key: 'f', does: 'Filter', run: () => setOpen('filter') },
    { key: '.', does: 'Show new runs', run: runs.showWaiting },
    { key: 'Escape', does: 'Clear the selection', run: () => setSelected(new Set()) },
  ]);
  const filters = (Object.keys(filterNames) as FilterName[]).filter((name) => listOf(search[name]).length > 0);
  const rowsSelected = runs.rows.filter(({ run_id: id }) => selected.has(id));
  const isEmpty = !runs.isLoading && !runs.error && runs.rows.length === 0;
  if (filters.length === 0 && isEmpty && !runs.isStale)
    return (
      <Page title="Runs" status={<Live status={status} />}>
        <Suspense fallback={<SkeletonRows />}>
          <Onboarding />
        </Suspense>
      </Page>
    );
  return (
    <Page
      title="Runs"
      status={<Live status={status} />}
      actions={
        <RoleLink needs="member" kind="primary" icon="plus" to="/runs/new">
          New run
          <Text notNarrow>
            <kbd>C</kbd>
          </Text>
        </RoleLink>
      }
      tabs={<Views views={viewsOf(person.uid, today)} search={search} />}
    >
      <ListBar {...{ search, setSearch, filters, find, shown, setShown }} open={setOpen} />
      <Strip search={search} />
      <List runs={runs} listKey={queryKeyOf(search)} {...{ shown, selected, setSelected }}>
        <Suspense>
          <NoMatch
            search={search}
            filters={filters}
            drop={(names) => setSearch(Object.fromEntries(names.map((name) => [name, undefined])))}
          />
        </Suspense>
      </List>
      {rowsSelected.length > 0 && <BulkBar runs={rowsSelected} clear={() => setSelected(new Set())} />}
      <Suspense>
        {open === 'filter' && (
          <FilterDialog
            search={search}
            apply={(next) => {
              setOpen(undefined);
              setSearch(next);
            }}
            close={() => setOpen(undefined)}
          />
        )}
        {open === 'save' && <SaveViewDialog search={search} close={() => setOpen(undefined)} />}
      </Suspense>
    </Page>
  );
}

/** Shows the loaded runs, a button for new runs, and `children` if no run matches. */
function List({
  runs,
  listKey,
  shown,
  selected,
  setSelected,
  children,
}: {
  runs: Runs;
  /** When the key changes, the list begins at its top. */
  listKey: string;
  /** Names of the columns that are shown. */
  shown: readonly string[];
  selected: ReadonlySet<string>;
  setSelected: (ids: ReadonlySet<string>) => void;
  children: ReactNode;
}) {
  const shownColumns = useMemo(() => columns.filter(({ name }) => shown.includes(name)), [shown]);
  const select = (ids: readonly string[], isOn: boolean) => {
    const next = new Set(selected);
    for (const id of ids) isOn ? next.add(id) : next.delete(id);
    setSelected(next);
  };
  const { rows } = runs;
  return (
    <>
      {runs.waiting > 0 && (
        <button type="button" className={styles.fresh} onClick={runs.showWaiting}>
          {`${countText(runs.waiting, 'new run')} above. Show ${runs.waiting === 1 ? 'it' : 'them'}`} <kbd>.</kbd>
        </button>
      )}
      {runs.error !== null && (
        <Pad>
          <Problem error={runs.error} onRetry={runs.retry} />
        </Pad>
      )}
      {rows.length > 0 ? (
        <RunTable
          key={listKey}
          rows={rows}
          columns={shownColumns}
          selected={selected}
          select={select}
          isStale={runs.isStale}
          total={runs.hasMore ? -1 : rows.length}
          readMore={runs.readMore}
        />
      ) : runs.isLoading ? (
        <SkeletonRows count={14} />
      ) : (
        runs.error === null && children
      )}
      <More className={styles.runsEnd}>
        {rows.length > 0 &&
          `${countText(rows.length, 'run')} loaded.${runs.hasMore ? ' More load as you scroll.' : ''}`}
      </More>
    </>
  );
}
