import type { DeliveryStatus, EventDelivery } from '@runyard/contract/team/event-subscriptions';
import { visibleText } from '@runyard/contract/wire/visible';
import { useInfiniteQuery, useQueryClient } from '@tanstack/react-query';
import { getRouteApi, Link, useNavigate } from '@tanstack/react-router';
import { Fragment } from 'react';
import { useClient } from '../../api/session.ts';
import { slowRead } from '../../api/slow-reads.ts';
import { oneOf } from '../../frame/search.ts';
import { useAttempts } from '../../parts/attempt.ts';
import { SkeletonRows } from '../../parts/empty.tsx';
import { countText, durationText } from '../../parts/format.ts';
import { Problem } from '../../parts/problem.tsx';
import { Ago } from '../../parts/time.tsx';
import styles from './settings.module.css';

const route = getRouteApi('/shell/settings/$tab');

const statuses = {
  pending: 'Waiting',
  delivered: 'Delivered',
  failed: 'Failed',
} as const satisfies Record<DeliveryStatus, string>;
const colours = { pending: 'waitc', delivered: 'mut', failed: 'badc' } as const satisfies Record<
  DeliveryStatus,
  string
>;

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
    <section className="stack s2" aria-label="Deliveries">
      <div className="row wrap">
        <h2 className="grow">Deliveries</h2>
        <span className="seg sm">
          {[undefined, ...(Object.keys(statuses) as DeliveryStatus[])].map((each) => (
            <button
              key={each ?? 'all'}
              type="button"
              className="btn ghost sm"
              aria-pressed={each === status}
              onClick={() => go({ status: each, delivery: undefined })}
            >
              {each === undefined ? 'All' : statuses[each]}
            </button>
          ))}
        </span>
      </div>
      <Problem error={list.error} onRetry={() => void list.refetch()} />
      {list.isPending ? (
        <SkeletonRows count={4} />
      ) : rows.length === 0 ? (
        <p className="mut">
          {status === undefined
            ? 'No delivery yet. A ping shows whether the address answers.'
            : `No delivery is ${statuses[status].toLowerCase()}.`}
        </p>
      ) : (
        <div className="card">
          <table className={`tbl in-card ${styles.tbl}`} aria-label="Deliveries">
            <thead>
              <tr>
                <th className="w120">Status</th>
                <th className="w120">Event</th>
                <th>Run</th>
                <th className="w140">Happened</th>
                <th className="w120">Attempts</th>
              </tr>
            </thead>
            <tbody>
              {rows.map((delivery) => (
                <Fragment key={delivery.id}>
                  <tr>
                    <td>
                      <button
                        type="button"
                        className={`${styles.open} ${colours[delivery.status]}`}
                        aria-expanded={opened === delivery.id}
                        onClick={() => go({ delivery: opened === delivery.id ? undefined : delivery.id })}
                      >
                        {statuses[delivery.status]}
                      </button>
                    </td>
                    <td className="mut">{delivery.event}</td>
                    <td className="mono dim">
                      {delivery.run_id !== undefined && (
                        <Link to="/runs/$runId" params={{ runId: delivery.run_id }} search={{}}>
                          {delivery.run_id}
                        </Link>
                      )}
                    </td>
                    <td className="mut">
                      <Ago time={delivery.occurred_at} />
                    </td>
                    <td className="mut">{countText(delivery.attempts.length, 'attempt')}</td>
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
          Older deliveries
        </button>
      )}
    </section>
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
    <div className="stack s2">
      <ol className="stack s1">
        {delivery.attempts.map(({ number, started_at: started, duration_ms: ms, status, error: why }) => (
          <li key={number} className="row wrap">
            <span className="dim">{number}</span>
            <Ago time={started} className="mut" />
            <span className={why === undefined ? 'okc' : 'badc'}>
              {status === undefined ? 'no answer' : `answer ${status}`}
            </span>
            <span className="dim">{durationText(ms)}</span>
            {why !== undefined && <span className="mut">{visibleText(why)}</span>}
          </li>
        ))}
      </ol>
      {delivery.attempts.length === 0 && <p className="mut">No attempt yet.</p>}
      {delivery.next_attempt_at !== undefined && (
        <p className="mut">
          Next attempt: <Ago time={delivery.next_attempt_at} />
        </p>
      )}
      <div className="row wrap">
        <button
          type="button"
          className="btn sm"
          disabled={!isEnabled}
          title={isEnabled ? undefined : 'The subscription is disabled'}
          onClick={() => void again()}
        >
          Deliver again
        </button>
        <code className="dim">{`webhook-id ${delivery.id}`}</code>
      </div>
      <Problem error={error} />
    </div>
  );
}
