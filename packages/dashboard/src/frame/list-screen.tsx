import type { UseQueryResult } from '@tanstack/react-query';
import { type LinkProps, useNavigate, useSearch } from '@tanstack/react-router';
import { type ReactNode, useState } from 'react';
import { useMay } from '../api/session.ts';
import { Pad } from '../parts/blocks.tsx';
import { SkeletonRows } from '../parts/empty.tsx';
import { Find, hasWords, NothingFound } from '../parts/find.tsx';
import { useKeys } from '../parts/keys.ts';
import { Problem } from '../parts/problem.tsx';
import { RoleLink } from '../parts/role-button.tsx';
import { Page } from './page.tsx';
import { oneOf } from './search.ts';

/**
 * The screen of a list that is loaded as a whole. A search field selects the items, and a link and the key `c` open the form for a new
 * item. The query `?new=` of the address keeps the form open.
 */
export function ListScreen<T>({
  title,
  what,
  to,
  query: { data, error, refetch },
  nameOf,
  form,
  empty,
  children,
}: {
  title: string;
  /** The word for an item, such as `schedule`. */
  what: string;
  /** The address of the screen. */
  to: NonNullable<LinkProps['to']>;
  query: Pick<UseQueryResult<readonly T[]>, 'data' | 'error' | 'refetch'>;
  /** Returns the text in which the search field looks for words. */
  nameOf: (item: T) => string;
  /** Returns the form for a new item. */
  form: (close: () => void) => ReactNode;
  /** Shown in place of an empty list. */
  empty: ReactNode;
  /** Shows the items that have the words of the search field. */
  children: (found: readonly T[]) => ReactNode;
}) {
  const navigate = useNavigate();
  const may = useMay('member');
  const isNew = oneOf(useSearch({ strict: false, select: (search) => search.new })) !== undefined;
  const [words, setWords] = useState('');
  const create = { to, search: { new: 'true' } };
  useKeys([{ key: 'c', does: `New ${what}`, run: () => may && void navigate(create) }]);
  const found = (data ?? []).filter((item) => hasWords(words, nameOf(item)));
  return (
    <Page
      title={title}
      actions={
        <>
          <Find words={words} change={setWords} />
          <RoleLink needs="member" kind="primary" icon="plus" {...create}>{`New ${what}`}</RoleLink>
        </>
      }
    >
      {isNew && <Pad>{form(() => void navigate({ to, search: {} }))}</Pad>}
      {error ? (
        <Pad>
          <Problem error={error} onRetry={() => void refetch()} />
        </Pad>
      ) : data === undefined ? (
        <SkeletonRows />
      ) : data.length === 0 && !isNew ? (
        empty
      ) : (
        <>
          {children(found)}
          <NothingFound words={words} found={found.length} />
        </>
      )}
    </Page>
  );
}
