import type { DeliveryStatus, EventDelivery } from '@runyard/contract/team/event-subscriptions';
import { visibleText } from '@runyard/contract/wire/visible';
import { useInfiniteQuery, useQueryClient } from '@tanstack/react-query';
import { getRouteApi, Link, useNavigate } from '@tanstack/react-router';
import { Fragment } from 'react';
import { useClient } from '../../api/session.ts';
import { slowRead } from '../../api/slow-reads.ts';
import { oneOf } from '../../frame/search.ts';
import { useAttempts } from '../../parts/attempt.ts';
import { P, Row, Stack, Text } from '../../parts/blocks.tsx';
import { ChooseOne } from '../../parts/choose-one.tsx';
import { Button } from '../../parts/controls.tsx';
import { SkeletonRows } from '../../parts/empty.tsx';
import { countText, durationText } from '../../parts/format.ts';
import { Problem } from '../../parts/problem.tsx';
import { Cell, Table } from '../../parts/table.tsx';
import { Ago } from '../../parts/time.tsx';
import styles from './settings.module.css';

const route = getRouteApi('/shell/settings/$tab');

const statuses = {
  pending: 'Waiting',
  delivered: 'Delivered',
  failed: 'Failed',
} as const satisfies Record<DeliveryStatus, string>;
const tones = { pending: 'wait', delivered: 'muted', failed: 'bad' } as const satisfies Record<DeliveryStatus, string>;

/** The deliveries of a subscription, newest first. `?status=` selects the deliveries with one status. `?delivery=` opens one delivery. */
export function Deliveries({ subscriptionId, isEnabled }: { subscriptionId: string; isEnabled: boolean }) {
  const client = useClient();
  const navigate = useNavigate();
  const search = route.useSearch();
  const wanted = oneOf(search.status);
  const status = wanted !== undefined && wanted in statuses ? (wanted as DeliveryStatus) : undefined;
  const opened = oneOf(search.delivery);
  const list = useInfiniteQuery({
    queryKey: ['event-deliveries', subscriptionId, status],
    queryFn: async ({ pageParam }) =>
      await client.listEventDeliveries({
        params: { subscriptionId },
        query: { ...(status === undefined ? {} : { status }), ...(pageParam === '' ? {} : { cursor: pageParam }) },
      }),
    initialPageParam: '',
    getNextPageParam: ({ page_info: page }) => (page.has_next_page ? page.next_cursor : undefined),
    // Reads the list often only while a delivery waits, because other deliveries do not change by themselves.
    refetchInterval: (query) =>
      query.state.data?.pages[0]?.deliveries.some((each) => each.status === 'pending') ? 3_000 : slowRead(query),
  });
  const go = (change: Record<string, string | undefined>) =>
    void navigate({ to: '.', search: { ...search, ...change }, replace: true });
  const rows = list.data?.pages.flatMap(({ deliveries }) => deliveries) ?? [];
  return (
    <Stack as="section" gap={2} aria-label="Deliveries">
      <Row wrap>
        <Text as="h2" grow>
          Deliveries
        </Text>
        <ChooseOne
          options={[[undefined, 'All'], ...(Object.entries(statuses) as [DeliveryStatus, string][])]}
          chosen={status}
          choose={(each) => go({ status: each, delivery: undefined })}
        />
      </Row>
      <Problem error={list.error} onRetry={() => void list.refetch()} />
      {list.isPending ? (
        <SkeletonRows count={4} />
      ) : rows.length === 0 ? (
        <P tone="muted">
          {status === undefined
            ? 'No delivery yet. A ping shows whether the address answers.'
            : `No delivery is ${statuses[status].toLowerCase()}.`}
        </P>
      ) : (
        <Table
          aria-label="Deliveries"
          className={styles.tbl}
          columns={[
            { name: 'Status', width: 120 },
            { name: 'Event', width: 120 },
            { name: 'Run' },
            { name: 'Happened', width: 140 },
            { name: 'Attempts', width: 120 },
          ]}
        >
          {rows.map((delivery) => (
            <Fragment key={delivery.id}>
              <tr>
                <td>
                  <Text
                    as="button"
                    type="button"
                    tone={tones[delivery.status]}
                    className={styles.open}
                    aria-expanded={opened === delivery.id}
                    onClick={() => go({ delivery: opened === delivery.id ? undefined : delivery.id })}
                  >
                    {statuses[delivery.status]}
                  </Text>
                </td>
                <Cell tone="muted">{delivery.event}</Cell>
                <Cell tone="dim" mono>
                  {delivery.run_id !== undefined && (
                    <Link to="/runs/$runId" params={{ runId: delivery.run_id }} search={{}}>
                      {delivery.run_id}
                    </Link>
                  )}
                </Cell>
                <Cell tone="muted">
                  <Ago time={delivery.occurred_at} />
                </Cell>
                <Cell tone="muted">{countText(delivery.attempts.length, 'attempt')}</Cell>
              </tr>
              {opened === delivery.id && (
                <tr>
                  <td className={styles.detail} colSpan={5}>
                    <Detail subscriptionId={subscriptionId} delivery={delivery} isEnabled={isEnabled} />
                  </td>
                </tr>
              )}
            </Fragment>
          ))}
        </Table>
      )}
      {list.hasNextPage && (
        <Button start disabled={list.isFetchingNextPage} onClick={() => void list.fetchNextPage()}>
          Older deliveries
        </Button>
      )}
    </Stack>
  );
}

function Detail({
  subscriptionId,
  delivery,
  isEnabled,
}: {
  subscriptionId: string;
  delivery: EventDelivery;
  isEnabled: boolean;
}) {
  const client = useClient();
  const queries = useQueryClient();
  const { error, attempt } = useAttempts();
  const again = async () => {
    await attempt(async () => {
      await client.redeliverEvent({ params: { subscriptionId, deliveryId: delivery.id } });
      await queries.invalidateQueries({ queryKey: ['event-deliveries', subscriptionId] });
    });
  };
  return (
    <Stack gap={2}>
      <Stack as="ol" gap={1}>
        {delivery.attempts.map(({ number, started_at: started, duration_ms: ms, status, error: why }) => (
          <Row key={number} as="li" wrap>
            <Text tone="dim">{number}</Text>
            <Ago time={started} tone="muted" />
            <Text tone={why === undefined ? 'good' : 'bad'}>
              {status === undefined ? 'no answer' : `answer ${status}`}
            </Text>
            <Text tone="dim">{durationText(ms)}</Text>
            {why !== undefined && <Text tone="muted">{visibleText(why)}</Text>}
          </Row>
        ))}
      </Stack>
      {delivery.attempts.length === 0 && <P tone="muted">No attempt yet.</P>}
      {delivery.next_attempt_at !== undefined && (
        <P tone="muted">
          Next attempt: <Ago time={delivery.next_attempt_at} />
        </P>
      )}
      <Row wrap>
        <Button
          small
          disabled={!isEnabled}
          title={isEnabled ? undefined : 'The subscription is disabled'}
          onClick={() => void again()}
        >
          Deliver again
        </Button>
        <Text as="code" tone="dim">{`webhook-id ${delivery.id}`}</Text>
      </Row>
      <Problem error={error} />
    </Stack>
  );
}
