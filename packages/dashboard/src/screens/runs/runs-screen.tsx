import { visibleText } from '@runyard/contract/wire/visible';
import { getRouteApi, useNavigate } from '@tanstack/react-router';
import { lazy, Suspense, useMemo, useRef, useState } from 'react';
import { useSession } from '../../api/session.ts';
import { useTeamStreamStatus } from '../../api/stream.ts';
import { Page } from '../../frame/page.tsx';
import { listOf, oneOf, type Search } from '../../frame/search.ts';
import { AddChip, Chip, More, Pad, Row, Text } from '../../parts/blocks.tsx';
import { Button, FilterBar, FindBox, FindInput } from '../../parts/controls.tsx';
import { SkeletonRows } from '../../parts/empty.tsx';
import { countText } from '../../parts/format.ts';
import { Icon } from '../../parts/icon.tsx';
import { useKeys } from '../../parts/keys.ts';
import { Live } from '../../parts/live.tsx';
import { Menu } from '../../parts/menu.tsx';
import { Problem } from '../../parts/problem.tsx';
import { RoleLink } from '../../parts/role-button.tsx';
import { BulkBar } from './bulk-bar.tsx';
import { columns, readColumns, writeColumns } from './columns.tsx';
import { RunTable } from './run-table.tsx';
import styles from './runs.module.css';
import { Strip } from './strip.tsx';
import { useRuns } from './use-runs.ts';
import { type FilterName, filterNames, queryKeyOf, startOfToday, viewsOf } from './views.ts';
import { Views } from './views-bar.tsx';

const FilterDialog = lazy(async () => ({ default: (await import('./filter-dialog.tsx')).FilterDialog }));
const SaveViewDialog = lazy(async () => ({ default: (await import('./save-view-dialog.tsx')).SaveViewDialog }));
const Onboarding = lazy(async () => ({ default: (await import('./onboarding.tsx')).Onboarding }));
const NoMatch = lazy(async () => ({ default: (await import('./no-match.tsx')).NoMatch }));

const route = getRouteApi('/shell/runs');

/** Labels of the values by which the list can be sorted. */
const orders = { updated_at: 'Last change', created_at: 'Created', title: 'Title', agent: 'Skill' } as const;

/** Lists the runs of the team. Views select, for example, the runs that need a person, live runs or failed runs. */
export function RunsScreen() {
  const search: Search = route.useSearch();
  const navigate = useNavigate();
  const { person } = useSession();
  const status = useTeamStreamStatus();
  const today = useMemo(() => startOfToday(), []);
  const views = viewsOf(person.uid, today);
  const [open, setOpen] = useState<'filter' | 'save' | undefined>();
  const [shown, setShown] = useState(readColumns);
  const shownColumns = useMemo(() => columns.filter(({ name }) => shown.includes(name)), [shown]);
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
  const isUnfiltered = filters.length === 0;
  const sortBy = oneOf(search.sort_by) ?? 'updated_at';
  const isOldestFirst = oneOf(search.sort_order) === 'asc';
  const select = (ids: readonly string[], isOn: boolean) => {
    const next = new Set(selected);
    for (const id of ids) isOn ? next.add(id) : next.delete(id);
    setSelected(next);
  };
  const rowsSelected = runs.rows.filter(({ run_id: id }) => selected.has(id));
  if (isUnfiltered && !runs.isLoading && !runs.error && runs.rows.length === 0 && !runs.isStale)
    return (
      <Page title="Runs" status={<Live status={status} />}>
        <Suspense>
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
      tabs={<Views views={views} search={search} />}
    >
      <FilterBar aria-label="Filters">
        <FindBox
          as="form"
          aria-label="Search"
          onSubmit={(event) => {
            event.preventDefault();
            setSearch({ q: find.current?.value.trim() || undefined });
          }}
        >
          <Icon name="search" small />
          <FindInput
            key={oneOf(search.q) ?? ''}
            ref={find}
            grow
            aria-label="Words in title or prompt, or the id of a run"
            placeholder="Words in title or prompt"
            defaultValue={oneOf(search.q)}
            onKeyDown={({ key, currentTarget }) => key === 'Escape' && currentTarget.blur()}
          />
          <span>
            <kbd>/</kbd>
          </span>
        </FindBox>
        {filters.map((name) => (
          <Chip key={name}>
            <Text tone="dim">{filterNames[name]}</Text>
            <Text cut>{visibleText(listOf(search[name]).join(', '))}</Text>
            <Button
              kind="ghost"
              small
              icon="x"
              aria-label={`Remove filter ${filterNames[name]}`}
              onClick={() => setSearch({ [name]: undefined })}
            />
          </Chip>
        ))}
        <AddChip type="button" onClick={() => setOpen('filter')}>
          <Icon name="filter" small />
          Filter
          <span>
            <kbd>F</kbd>
          </span>
        </AddChip>
        <Row as="span" tone="dim" right notNarrow>
          <Menu
            label="Order"
            hasWords
            kind="ghost"
            entries={[
              ...Object.entries(orders).map(([name, label]) => ({
                label,
                run: () => setSearch({ sort_by: name === 'updated_at' ? undefined : name }),
              })),
              {
                label: isOldestFirst ? 'Newest first' : 'Oldest first',
                run: () => setSearch({ sort_order: isOldestFirst ? undefined : 'asc' }),
              },
            ]}
          >
            <Icon name="sortd" small className={isOldestFirst ? styles.turned : ''} />
            {orders[sortBy as keyof typeof orders] ?? 'Last change'}
          </Menu>
          <Menu
            label="Columns"
            hasWords
            kind="ghost"
            entries={columns.map(({ name, label }) => ({
              label: `${shown.includes(name) ? '✓ ' : ''}${label}`,
              run: () => {
                const next = shown.includes(name) ? shown.filter((each) => each !== name) : [...shown, name];
                writeColumns(next);
                setShown(next);
              },
            }))}
          >
            Columns
          </Menu>
          <Button kind="ghost" onClick={() => setOpen('save')}>
            Save view
          </Button>
        </Row>
      </FilterBar>
      <Strip search={search} />
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
      {runs.rows.length > 0 ? (
        <RunTable
          key={queryKeyOf(search)}
          rows={runs.rows}
          columns={shownColumns}
          selected={selected}
          select={select}
          isStale={runs.isStale}
          total={runs.hasMore ? -1 : runs.rows.length}
          readMore={runs.readMore}
        />
      ) : runs.isLoading ? (
        <SkeletonRows count={14} />
      ) : (
        runs.error === null && (
          <Suspense>
            <NoMatch
              search={search}
              filters={filters}
              drop={(names) => setSearch(Object.fromEntries(names.map((name) => [name, undefined])))}
            />
          </Suspense>
        )
      )}
      <More className={styles.runsEnd}>
        {runs.rows.length > 0 &&
          `${countText(runs.rows.length, 'run')} loaded.${runs.hasMore ? ' More load as you scroll.' : ''}`}
      </More>
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
