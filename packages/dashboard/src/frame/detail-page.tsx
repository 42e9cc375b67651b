import type { UseQueryResult } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { statusOf } from '../api/problem.ts';
import { Loaded } from '../parts/loaded.tsx';
import { NotFound } from './not-found.tsx';
import { Page } from './page.tsx';

/**
 * The page of one object. Shows `children` as soon as the object is read, and a placeholder before that. Shows an error if the object does not
 * exist or cannot be read. `what`: the kind of object, such as `webhook`.
 */
export function DetailPage<T>({
  what,
  crumbs,
  query,
  children,
}: {
  what: string;
  crumbs: ReactNode;
  query: Pick<UseQueryResult<T>, 'data' | 'error' | 'refetch'>;
  children: (data: T) => ReactNode;
}) {
  const isGone = statusOf(query.error) === 404;
  if (query.data !== undefined && !isGone) return children(query.data);
  return (
    <Page title={what.charAt(0).toUpperCase() + what.slice(1)} crumbs={crumbs}>
      {isGone ? <NotFound what={what} /> : <Loaded query={query}>{() => null}</Loaded>}
    </Page>
  );
}
