/** The bar above the list of runs: words, filters, order and columns. */
import { visibleText } from '@runyard/contract/wire/visible';
import type { RefObject } from 'react';
import { listOf, oneOf, type Search } from '../../frame/search.ts';
import { AddChip, Chip, Row, Text } from '../../parts/blocks.tsx';
import { Button, FilterBar, FindBox, FindInput } from '../../parts/controls.tsx';
import { Icon } from '../../parts/icon.tsx';
import { Menu } from '../../parts/menu.tsx';
import { columns, writeColumns } from './columns.tsx';
import styles from './runs.module.css';
import { type FilterName, filterNames } from './views.ts';

/** Labels of the values by which the list can be sorted. */
const orders = { updated_at: 'Last change', created_at: 'Created', title: 'Title', agent: 'Skill' } as const;

interface BarProps {
  readonly search: Search;
  readonly setSearch: (change: Search) => void;
}

export function ListBar({
  search,
  setSearch,
  filters,
  find,
  shown,
  setShown,
  open,
}: BarProps & {
  /** Names of the filters that the address sets. */
  filters: readonly FilterName[];
  /** The input for words. */
  find: RefObject<HTMLInputElement | null>;
  /** Names of the columns that are shown. */
  shown: readonly string[];
  setShown: (names: readonly string[]) => void;
  open: (dialog: 'filter' | 'save') => void;
}) {
  return (
    <FilterBar aria-label="Filters">
      <WordsField search={search} setSearch={setSearch} find={find} />
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
      <AddChip type="button" onClick={() => open('filter')}>
        <Icon name="filter" small />
        Filter
        <span>
          <kbd>F</kbd>
        </span>
      </AddChip>
      <Row as="span" tone="dim" right notNarrow>
        <OrderMenu search={search} setSearch={setSearch} />
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
        <Button kind="ghost" onClick={() => open('save')}>
          Save view
        </Button>
      </Row>
    </FilterBar>
  );
}

function WordsField({ search, setSearch, find }: BarProps & { find: RefObject<HTMLInputElement | null> }) {
  return (
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
  );
}

function OrderMenu({ search, setSearch }: BarProps) {
  const isOldestFirst = oneOf(search.sort_order) === 'asc';
  return (
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
      {orders[(oneOf(search.sort_by) ?? 'updated_at') as keyof typeof orders] ?? 'Last change'}
    </Menu>
  );
}
