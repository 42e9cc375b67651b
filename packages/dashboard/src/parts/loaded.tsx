import type { UseQueryResult } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { SkeletonRows } from './empty.tsx';
import { Problem } from './problem.tsx';

/** Shows the result of a query, a placeholder while the query is running, or the error if the query failed. */
export function Loaded<T>({
  query,
  rows = 4,
  children,
}: {
  query: Pick<UseQueryResult<T>, 'data' | 'error' | 'refetch'>;
  rows?: number;
  children: (data: T) => ReactNode;
}) {
  if (query.data !== undefined) return children(query.data);
  if (query.error) return <Problem error={query.error} onRetry={() => void query.refetch()} />;
  return <SkeletonRows count={rows} />;
}
