import type { AuditEntry, ListAuditEntriesQuery } from '@runyard/contract/team/audit';
import { visibleText } from '@runyard/contract/wire/visible';
import { useInfiniteQuery } from '@tanstack/react-query';
import { getRouteApi, useNavigate } from '@tanstack/react-router';
import { useClient, useSession } from '../../api/session.ts';
import { oneOf } from '../../frame/search.ts';
import { SkeletonRows } from '../../parts/empty.tsx';
import { Icon } from '../../parts/icon.tsx';
import { useLongList } from '../../parts/long-list.ts';
import { nameOf } from '../../parts/person.tsx';
import { Problem } from '../../parts/problem.tsx';
import { Ago } from '../../parts/time.tsx';
import { AuditDetail, type Go } from './audit-detail.tsx';
import { AuditFilters } from './audit-filters.tsx';
import { Section } from './section.tsx';
import styles from './settings.module.css';

const route = getRouteApi('/shell/settings/$tab');
const filters = ['actor', 'action', 'subject_type', 'subject_uid', 'since', 'until'] as const;

/** Lists the changes in the team. A row shows the author, the action, the changed object and the origin. The filters are in the address. */
export function AuditLog() {
  const client = useClient();
  const { team } = useSession();
  const navigate = useNavigate();
  const search = route.useSearch();
  const query = Object.fromEntries(
    filters.flatMap((name) => {
      const value = oneOf(search[name]);
      return value === undefined || value === '' ? [] : [[name, value]];
    }),
  ) as Partial<ListAuditEntriesQuery>;
  const opened = oneOf(search.entry);
  const list = useInfiniteQuery({
    queryKey: ['audit-log', team.uid, query],
    queryFn: async ({ pageParam, signal }) =>
      await client.listAuditEntries({
        query: { ...query, ...(pageParam === '' ? {} : { cursor: pageParam }) },
        signal,
      }),
    initialPageParam: '',
    getNextPageParam: ({ page_info: page }) => (page.has_next_page ? page.next_cursor : undefined),
    placeholderData: (before) => before,
  });
  const go = (change: Record<string, string | undefined>) =>
    void navigate({ to: '.', search: { ...search, entry: undefined, ...change }, replace: true });
  const rows = list.data?.pages.flatMap(({ entries }) => entries) ?? [];
  const long = useLongList<HTMLTableSectionElement>({
    count: rows.length,
    rowPx: 35,
    keyOf: (index) => rows[index]?.id ?? '',
  });
  const isFiltered = Object.keys(query).length > 0;
  return (
    <>
      <Section
        title="Audit log"
        about="Each change in the team, each sign-in, and the actions of keys and people on runs. It contains no secrets and no messages."
      />
      <AuditFilters query={query} go={go} />
      {query.subject_uid !== undefined && (
        <p className="row">
          <span className="chip">
            <span className="k">thing</span>
            <code>{query.subject_uid}</code>
            <button
              type="button"
              className="btn ghost sm icon"
              aria-label="Show all things"
              onClick={() => go({ subject_uid: undefined })}
            >
              <Icon name="x" small />
            </button>
          </span>
        </p>
      )}
      <Problem error={list.error} onRetry={() => void list.refetch()} />
      {list.isPending ? (
        <SkeletonRows count={10} />
      ) : rows.length === 0 ? (
        <div className="row wrap">
          <p className="mut">{isFiltered ? 'No change matches all of the filters.' : 'No change yet.'}</p>
          {isFiltered && (
            <button
              type="button"
              className="btn sm"
              onClick={() => go(Object.fromEntries(filters.map((name) => [name, undefined])))}
            >
              Drop all filters
            </button>
          )}
        </div>
      ) : (
        <div className={`card ${list.isPlaceholderData ? 'stale' : ''}`}>
          <table className={`tbl in-card ${styles.tbl}`} aria-label="Audit log">
            <thead>
              <tr>
                <th className="w120">When</th>
                <th className="w180">Who</th>
                <th className="w200">What</th>
                <th>Thing</th>
                <th className="w140">From</th>
              </tr>
            </thead>
            <tbody ref={long.list}>
              <Space px={long.above} />
              {long.indexes.map((index) => {
                const entry = rows[index];
                return (
                  entry && (
                    <Entry
                      key={entry.id}
                      entry={entry}
                      index={index}
                      isOpen={opened === entry.id}
                      go={go}
                      measure={long.measure}
                    />
                  )
                );
              })}
              <Space px={long.below} />
            </tbody>
          </table>
        </div>
      )}
      {list.hasNextPage && (
        <button
          type="button"
          className="btn start"
          disabled={list.isFetchingNextPage}
          onClick={() => void list.fetchNextPage()}
        >
          Older changes
        </button>
      )}
    </>
  );
}

/** Fills the space of rows that are not rendered. */
const Space = ({ px }: { px: number }) =>
  px > 0 && (
    <tr>
      <td className="space" colSpan={5} style={{ height: px }} />
    </tr>
  );

function Entry({
  entry,
  index,
  isOpen,
  go,
  measure,
}: {
  entry: AuditEntry;
  index: number;
  isOpen: boolean;
  go: Go;
  measure: (row: Element | null) => void;
}) {
  return (
    <>
      {/* A new function at each rendering, so that the row is measured again when its detail opens or closes. */}
      <tr ref={(row) => measure(row)} data-index={index} aria-rowindex={index + 2}>
        <td className="mut">
          <Ago time={entry.occurred_at} />
        </td>
        <td>{nameOf(entry.actor)}</td>
        <td>
          <button
            type="button"
            className={styles.open}
            aria-expanded={isOpen}
            onClick={() => go({ entry: isOpen ? undefined : entry.id })}
          >
            <code>{entry.action}</code>
          </button>
        </td>
        <td className="cut">{visibleText(entry.subject.name ?? entry.subject.uid)}</td>
        <td className="dim mono">{entry.origin.address}</td>
      </tr>
      {isOpen && (
        <tr data-of-row="">
          <td className={styles.detail} colSpan={5}>
            <AuditDetail entry={entry} go={go} />
          </td>
        </tr>
      )}
    </>
  );
}
