import type { ListAuditEntriesQuery } from '@runyard/contract/team/audit';
import { useInfiniteQuery } from '@tanstack/react-query';
import { getRouteApi, useNavigate } from '@tanstack/react-router';
import { useId } from 'react';
import { useMembers } from '../../api/lists.ts';
import { useClient, useSession } from '../../api/session.ts';
import { oneOf } from '../../frame/search.ts';
import { Card, Chip, P, Row, Text } from '../../parts/blocks.tsx';
import { Button, Input } from '../../parts/controls.tsx';
import { SkeletonRows, Space } from '../../parts/empty.tsx';
import { Field, Select } from '../../parts/form.tsx';
import { useLongList } from '../../parts/long-list.ts';
import { nameOf } from '../../parts/person.tsx';
import { Problem } from '../../parts/problem.tsx';
import { Cell, Table } from '../../parts/table.tsx';
import { Ago } from '../../parts/time.tsx';
import { AuditDetail, type Go } from './audit-detail.tsx';
import { AuditSubject } from './audit-subject.tsx';
import { Section } from './section.tsx';
import styles from './settings.module.css';

const route = getRouteApi('/shell/settings/$tab');
const filters = ['actor', 'action', 'subject_type', 'subject_uid', 'since', 'until'] as const;

/** Kinds of objects whose changes a person can select in the log. The address can name further kinds. */
const subjects = [
  'agent_identity',
  'automation',
  'budget',
  'code_host_credential',
  'environment',
  'event_subscription',
  'factory',
  'invitation',
  'key',
  'mcp_server',
  'member',
  'model_provider',
  'model_settings',
  'run',
  'schedule',
  'secret',
  'team',
  'webhook',
  'worker_pool',
] as const;

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
        query: { ...query, limit: 100, ...(pageParam === '' ? {} : { cursor: pageParam }) },
        signal,
      }),
    initialPageParam: '',
    getNextPageParam: ({ page_info: page }) => (page.has_next_page ? page.next_cursor : undefined),
    placeholderData: (before) => before,
  });
  const go = (change: Record<string, string | undefined>) =>
    void navigate({ to: '.', search: { ...search, entry: undefined, ...change }, replace: true });
  const entries = list.data?.pages.flatMap((page) => page.entries) ?? [];
  // The details of the opened entry are a row of their own.
  const rows = entries.flatMap((entry) => [
    { entry, isDetail: false },
    ...(entry.id === opened ? [{ entry, isDetail: true }] : []),
  ]);
  const long = useLongList<HTMLTableSectionElement>({
    count: rows.length,
    rowPx: 36,
    keyOf: (index) => `${rows[index]?.entry.id} ${rows[index]?.isDetail}`,
  });
  const isFiltered = Object.keys(query).length > 0;
  return (
    <>
      <Section
        title="Audit log"
        about="Each change in the team, each sign-in, and the actions of keys and people on runs. It contains no secrets and no messages."
      />
      <Filters query={query} go={go} />
      {query.subject_uid !== undefined && (
        <Row as="p">
          <Chip>
            <Text tone="dim">thing</Text>
            <code>{query.subject_uid}</code>
            <Button
              kind="ghost"
              small
              icon="x"
              aria-label="Show all things"
              onClick={() => go({ subject_uid: undefined })}
            />
          </Chip>
        </Row>
      )}
      <Problem error={list.error} onRetry={() => void list.refetch()} />
      {list.isPending ? (
        <SkeletonRows count={10} />
      ) : rows.length === 0 ? (
        <Row wrap>
          <P tone="muted">{isFiltered ? 'No change matches all of the filters.' : 'No change yet.'}</P>
          {isFiltered && (
            <Button small onClick={() => go(Object.fromEntries(filters.map((name) => [name, undefined])))}>
              Drop all filters
            </Button>
          )}
        </Row>
      ) : (
        <Card stale={list.isPlaceholderData}>
          <Table
            inCard
            aria-label="Audit log"
            className={styles.tbl}
            columns={[
              { name: 'When', width: 120 },
              { name: 'Who', width: 180 },
              { name: 'What', width: 200 },
              { name: 'Thing' },
              { name: 'From', width: 140 },
            ]}
          >
            <Space px={long.above} />
            {long.indexes.map((index) => {
              const { entry, isDetail } = rows[index] ?? {};
              if (entry === undefined) return null;
              if (isDetail)
                return (
                  <tr key={`${entry.id} details`} ref={long.measure} data-index={index}>
                    <td className={styles.detail} colSpan={5}>
                      <AuditDetail entry={entry} go={go} />
                    </td>
                  </tr>
                );
              return (
                <tr key={entry.id} ref={long.measure} data-index={index}>
                  <Cell tone="muted">
                    <Ago time={entry.occurred_at} />
                  </Cell>
                  <td>{nameOf(entry.actor)}</td>
                  <td>
                    <button
                      type="button"
                      className={styles.open}
                      aria-expanded={opened === entry.id}
                      onClick={() => go({ entry: opened === entry.id ? undefined : entry.id })}
                    >
                      <code>{entry.action}</code>
                    </button>
                  </td>
                  <Cell cut>
                    <AuditSubject entry={entry} />
                  </Cell>
                  <Cell tone="dim" mono>
                    {entry.origin.address}
                  </Cell>
                </tr>
              );
            })}
            <Space px={long.below} />
          </Table>
        </Card>
      )}
      {list.hasNextPage && (
        <Button start disabled={list.isFetchingNextPage} onClick={() => void list.fetchNextPage()}>
          Older changes
        </Button>
      )}
    </>
  );
}

function Filters({ query, go }: { query: Partial<ListAuditEntriesQuery>; go: Go }) {
  const members = useMembers();
  const list = useId();
  const { actor, subject_type: subject } = query;
  const people = (members.data ?? []).map(({ user }) => [user.uid, nameOf(user)] as const);
  return (
    <form className={styles.filters} aria-label="Filters" onSubmit={(event) => event.preventDefault()}>
      <Field label="Who" path="actor">
        {(control) => (
          <Select
            {...control}
            value={actor ?? ''}
            options={[
              ['', 'anyone'],
              ...people,
              ...(actor === undefined || people.some(([uid]) => uid === actor) ? [] : [[actor, actor] as const]),
            ]}
            onChange={({ target }) => go({ actor: target.value })}
          />
        )}
      </Field>
      <Field label="Kind of thing" path="subject_type">
        {(control) => (
          <Select
            {...control}
            value={subject ?? ''}
            options={[
              ['', 'any'],
              ...subjects.map((each) => [each, each] as const),
              ...(subject === undefined || (subjects as readonly string[]).includes(subject)
                ? []
                : [[subject, subject] as const]),
            ]}
            onChange={({ target }) => go({ subject_type: target.value })}
          />
        )}
      </Field>
      <Field label="Action" path="action">
        {(control) => (
          <>
            <Input
              {...control}
              key={query.action}
              mono
              list={list}
              placeholder="key.create"
              defaultValue={query.action}
              onBlur={({ target }) =>
                target.value.trim() !== (query.action ?? '') && go({ action: target.value.trim() })
              }
              onKeyDown={({ key, currentTarget }) => key === 'Enter' && go({ action: currentTarget.value.trim() })}
            />
            <datalist id={list}>
              {subjects.flatMap((each) =>
                ['create', 'update', 'delete'].map((verb) => (
                  <option key={`${each}.${verb}`}>{`${each}.${verb}`}</option>
                )),
              )}
            </datalist>
          </>
        )}
      </Field>
      <Field label="From" path="since">
        {(control) => (
          <Input
            {...control}
            type="date"
            value={query.since?.slice(0, 10) ?? ''}
            onChange={({ target }) => go({ since: target.value === '' ? undefined : `${target.value}T00:00:00Z` })}
          />
        )}
      </Field>
      <Field label="Before" path="until">
        {(control) => (
          <Input
            {...control}
            type="date"
            value={query.until?.slice(0, 10) ?? ''}
            onChange={({ target }) => go({ until: target.value === '' ? undefined : `${target.value}T00:00:00Z` })}
          />
        )}
      </Field>
    </form>
  );
}
