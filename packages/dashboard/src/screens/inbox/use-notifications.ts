import type { ListNotificationsResponse, Notification } from '@runyard/contract/inbox/notifications';
import { type InfiniteData, useInfiniteQuery, useQueryClient } from '@tanstack/react-query';
import { failureOf } from '../../api/problem.ts';
import { useClient, useSession } from '../../api/session.ts';
import { useTeamEvents } from '../../api/stream.ts';
import { useSoon } from '../../parts/soon.ts';
import { showToast } from '../../parts/toast.tsx';
import { type KindFilter, kindFilters } from './kinds.ts';

/** All events that arrive within this number of milliseconds cause only one read. */
const readMs = 1_000;

/** The filters of the list. */
export interface Shown {
  readonly scope: 'mine' | 'team';
  readonly filter: KindFilter | undefined;
  readonly isUnread: boolean;
}

/** Reads the notifications, and reads them again when a run changes. */
export function useNotifications({ scope, filter, isUnread }: Shown) {
  const client = useClient();
  const { team } = useSession();
  const queries = useQueryClient();
  const readAgain = useSoon(() => void queries.invalidateQueries({ queryKey: ['inbox', team.uid, scope] }), readMs);
  useTeamEvents(({ type }) => type === 'state' && readAgain(), readAgain);
  return useInfiniteQuery({
    queryKey: ['inbox', team.uid, scope, filter, isUnread],
    queryFn: async ({ pageParam }) =>
      await client.listNotifications({
        query: {
          scope,
          ...(filter === undefined ? {} : { kind: [...kindFilters[filter].kinds] }),
          ...(isUnread && scope === 'mine' ? { is_read: false } : {}),
          ...(pageParam === '' ? {} : { cursor: pageParam }),
        },
      }),
    initialPageParam: '',
    getNextPageParam: ({ page_info: page }) => page.next_cursor,
  });
}

type Pages = InfiniteData<ListNotificationsResponse, string>;

/** Returns functions that mark notifications. The page shows a mark at once, and the earlier list again if the service refuses it. */
export function useMarks() {
  const client = useClient();
  const { team } = useSession();
  const queries = useQueryClient();
  const key = ['inbox', team.uid];

  const mark = async (
    show: (items: readonly Notification[]) => Notification[],
    send: () => Promise<unknown>,
  ): Promise<void> => {
    await queries.cancelQueries({ queryKey: key });
    queries.setQueriesData<Pages>({ queryKey: key, predicate: ({ queryKey }) => queryKey[2] !== 'count' }, (data) => {
      return data && { ...data, pages: data.pages.map((page) => ({ ...page, items: show(page.items) })) };
    });
    try {
      await send();
    } catch (failure) {
      showToast(failureOf(failure).detail);
    }
    await queries.invalidateQueries({ queryKey: key });
  };
  const body = ({ notification_uid: uid }: Notification) => ({ body: { notification_uids: [uid] } });

  return {
    dismiss: (item: Notification) =>
      void mark(
        (items) => items.filter((each) => each.notification_uid !== item.notification_uid),
        async () => {
          await client.dismissNotifications(body(item));
          showToast(
            'Dismissed',
            () =>
              void mark(
                (items) => [...items],
                () => client.restoreNotifications(body(item)),
              ),
          );
        },
      ),
    setRead: (item: Notification, isRead: boolean) =>
      void mark(
        (items) =>
          items.map((each) => (each.notification_uid === item.notification_uid ? { ...each, is_read: isRead } : each)),
        () => (isRead ? client.readNotifications(body(item)) : client.unreadNotifications(body(item))),
      ),
  };
}
