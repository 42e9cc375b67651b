/** The list of deliveries of the team or of one webhook. It has pages of older deliveries, and adds new deliveries when they arrive. */

import type {
  ListTeamDeliveriesQuery,
  ListTeamDeliveriesResponse,
  TeamWebhookDelivery,
} from '@runyard/contract/automations/team-lists';
import { visibleText } from '@runyard/contract/wire/visible';
import { type InfiniteData, useInfiniteQuery, useQueryClient } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { type ReactNode, useState } from 'react';
import { useClient, useSession } from '../../api/session.ts';
import { useDeliveries } from '../../api/stream.ts';
import { CardBody, More, Text } from '../../parts/blocks.tsx';
import { Button } from '../../parts/controls.tsx';
import { countText } from '../../parts/format.ts';
import { Live } from '../../parts/live.tsx';
import { useLongList } from '../../parts/long-list.ts';
import { Problem } from '../../parts/problem.tsx';
import { Ago } from '../../parts/time.tsx';
import { Label, summaryOf } from './delivery.tsx';
import styles from './webhooks.module.css';

/** Filters of the list, with the names of the API. */
export type DeliveryFilters = Pick<ListTeamDeliveriesQuery, 'webhook_uid' | 'label' | 'started'>;

const passes = (delivery: TeamWebhookDelivery, { webhook_uid: webhookUid, label, started }: DeliveryFilters): boolean =>
  (webhookUid === undefined || delivery.webhook_uid === webhookUid) &&
  (label === undefined || delivery.label === label) &&
  (started === undefined || (delivery.runs ?? []).length > 0 === started);

type Pages = InfiniteData<ListTeamDeliveriesResponse, string>;

/** Adds new deliveries at the beginning of the first page. If a page already contains a delivery, replaces it there. */
function withDeliveries(pages: Pages, news: readonly TeamWebhookDelivery[]): Pages {
  const known = new Map(news.map((each) => [each.delivery_id, each]));
  const changed = pages.pages.map((page) => ({
    ...page,
    deliveries: page.deliveries.map((each) => {
      const fresh = known.get(each.delivery_id) ?? each;
      known.delete(each.delivery_id);
      return fresh;
    }),
  }));
  const [first, ...others] = changed;
  if (first === undefined) return pages;
  return {
    ...pages,
    pages: [{ ...first, deliveries: [...known.values().toArray().toReversed(), ...first.deliveries] }, ...others],
  };
}

/**
 * Reads the deliveries that match the filters, and follows the event stream. While `isHeld` is true, new deliveries are not shown, so
 * that no row moves while the reader looks at it. A changed outcome is always shown at once.
 */
export function useDeliveryList(filters: DeliveryFilters, isHeld: boolean) {
  const client = useClient();
  const { team } = useSession();
  const queries = useQueryClient();
  const [waiting, setWaiting] = useState<readonly TeamWebhookDelivery[]>([]);
  const queryKey = ['deliveries', team.uid, filters];
  const list = useInfiniteQuery({
    queryKey,
    queryFn: async ({ pageParam }) =>
      await client.listTeamDeliveries({
        query: { ...filters, limit: 50, ...(pageParam === '' ? {} : { cursor: pageParam }) },
      }),
    initialPageParam: '',
    getNextPageParam: ({ page_info: page }) => (page.has_next_page ? page.next_cursor : undefined),
  });
  const put = (news: readonly TeamWebhookDelivery[]) =>
    queries.setQueryData<Pages>(queryKey, (pages) => pages && withDeliveries(pages, news));
  const rows = list.data?.pages.flatMap((page) => page.deliveries) ?? [];
  const status = useDeliveries(
    (delivery) => {
      if (!passes(delivery, filters)) return;
      void queries.invalidateQueries({ queryKey: ['delivery', delivery.delivery_id] });
      const isKnown = rows.some(({ delivery_id: id }) => id === delivery.delivery_id);
      if (isKnown || !isHeld) put([delivery]);
      else setWaiting((before) => [...before.filter((each) => each.delivery_id !== delivery.delivery_id), delivery]);
    },
    () => void queries.invalidateQueries({ queryKey }),
  );
  const shown = waiting.filter((each) => passes(each, filters));
  return {
    list,
    rows,
    status,
    waiting: shown.length,
    showWaiting: () => {
      put(shown);
      setWaiting([]);
    },
  };
}

/** Shows the deliveries of a list. `empty`: shown if there are no deliveries; `isOfTeam`: each row shows the name of its webhook. */
export function DeliveryRows({
  deliveries: { list, rows, status, waiting, showWaiting },
  selected,
  search = {},
  isOfTeam = false,
  empty,
}: {
  deliveries: ReturnType<typeof useDeliveryList>;
  selected?: string | undefined;
  search?: Record<string, string>;
  isOfTeam?: boolean;
  empty: ReactNode;
}) {
  const long = useLongList<HTMLDivElement>({
    count: rows.length,
    rowPx: 55,
    keyOf: (index) => rows[index]?.delivery_id ?? '',
    // On a narrow page, the list of one webhook shows only its newest deliveries.
    isShort: !isOfTeam && matchMedia('(max-width: 860px)').matches,
  });
  return (
    <>
      <CardBody row className={styles.deliveryBar}>
        <Live status={status} />
        {waiting > 0 && (
          <Button small onClick={showWaiting}>
            {countText(waiting, 'new delivery', 'new deliveries')}
          </Button>
        )}
      </CardBody>
      {list.error && <Problem error={list.error} onRetry={() => void list.refetch()} />}
      {rows.length === 0 && !list.isPending && !list.hasNextPage && empty}
      <div ref={long.list}>
        <div style={{ height: long.above }} />
        {long.indexes.map((index) => {
          const delivery = rows[index];
          return (
            delivery && (
              <Link
                key={delivery.delivery_id}
                ref={long.measure}
                data-index={index}
                className={styles.deliveryRow}
                data-part="delivery"
                to="/factories/$factoryUid/webhooks/$webhookUid/deliveries/$deliveryId"
                params={{
                  factoryUid: delivery.factory_uid,
                  webhookUid: delivery.webhook_uid,
                  deliveryId: delivery.delivery_id,
                }}
                search={search}
                {...(delivery.delivery_id === selected ? { 'aria-current': 'true' as const } : {})}
              >
                <Label delivery={delivery} />
                <Text cut>
                  {isOfTeam && <Text medium>{`${visibleText(delivery.webhook_name)} `}</Text>}
                  {visibleText(delivery.event ?? delivery.identity ?? delivery.delivery_id)}
                </Text>
                <Ago time={delivery.received_at} tone="dim" small />
                <Text cut className={styles.sub}>
                  {summaryOf(delivery)}
                </Text>
              </Link>
            )
          );
        })}
        <div style={{ height: long.below }} />
      </div>
      {list.hasNextPage && (
        <More>
          <Button small onClick={() => void list.fetchNextPage()}>
            {rows.length === 0 ? 'Look at older deliveries' : 'Older deliveries'}
          </Button>
        </More>
      )}
    </>
  );
}
