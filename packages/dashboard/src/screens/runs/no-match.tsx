import { useQueries } from '@tanstack/react-query';
import { useClient, useSession } from '../../api/session.ts';
import type { Search } from '../../frame/search.ts';
import { Row } from '../../parts/blocks.tsx';
import { Button } from '../../parts/controls.tsx';
import { Empty } from '../../parts/empty.tsx';
import { countText } from '../../parts/format.ts';
import { type FilterName, filterNames, filtersOf } from './views.ts';

/**
 * Shown if no run matches the filters. Counts the runs that the list would have without each single filter, and offers to drop the filter
 * that excludes most runs.
 */
export function NoMatch({
  search,
  filters,
  drop,
}: {
  search: Search;
  filters: readonly FilterName[];
  drop: (filters: readonly FilterName[]) => void;
}) {
  const client = useClient();
  const { team } = useSession();
  const counts = useQueries({
    queries: filters.map((name) => {
      const query = filtersOf({ ...search, [name]: undefined });
      return {
        queryKey: ['counts', team.uid, query],
        queryFn: async () => await client.countRuns({ query }),
        retry: false,
      };
    }),
  });
  const without = filters
    .map((name, index) => ({ name, data: counts[index]?.data }))
    .flatMap(({ name, data }) => (data === undefined || data.total === 0 ? [] : [{ name, ...data }]))
    .toSorted((a, b) => b.total - a.total);
  const [best, ...others] = without;
  const words = (name: FilterName) => `Drop ${filterNames[name]}`;
  return (
    <Empty
      title="No run matches"
      action={
        <Row wrap>
          {best && (
            <Button kind="primary" onClick={() => drop([best.name])}>
              {`${words(best.name)}: ${countText(best.total, 'run')}${best.is_exact ? '' : ' or more'}`}
            </Button>
          )}
          {others.map(({ name, total, is_exact: isExact }) => (
            <Button key={name} onClick={() => drop([name])}>
              {`${words(name)}: ${countText(total, 'run')}${isExact ? '' : ' or more'}`}
            </Button>
          ))}
          {(filters.length > 1 || best === undefined) && (
            <Button kind="ghost" onClick={() => drop(filters)}>
              Drop all filters
            </Button>
          )}
        </Row>
      }
    >
      {best === undefined && filters.length > 1
        ? 'The list stays empty if only one of the filters is dropped.'
        : `The filters ${filters.map((name) => filterNames[name]).join(', ')} together exclude every run.`}
    </Empty>
  );
}
