import type { Notification } from '@runyard/contract/inbox/notifications';
import { visibleText } from '@runyard/contract/wire/visible';
import { getRouteApi, Link, type LinkProps, useNavigate } from '@tanstack/react-router';
import { oneOf } from '../../frame/search.ts';
import { More, Row, Stack, Text } from '../../parts/blocks.tsx';
import { ChooseOne } from '../../parts/choose-one.tsx';
import { Button } from '../../parts/controls.tsx';
import { Empty, SkeletonRows } from '../../parts/empty.tsx';
import { moveFocus } from '../../parts/find.tsx';
import { Icon } from '../../parts/icon.tsx';
import { useKeys } from '../../parts/keys.ts';
import { look } from '../../parts/look.ts';
import { Problem } from '../../parts/problem.tsx';
import { Cell, RunCell, Say, Table } from '../../parts/table.tsx';
import { Ago } from '../../parts/time.tsx';
import styles from './inbox.module.css';
import { type KindFilter, kindFilters, kindLooks, lineOf } from './kinds.ts';
import { useMarks, useNotifications } from './use-notifications.ts';

const route = getRouteApi('/shell/inbox');
const kinds = Object.keys(kindFilters) as KindFilter[];

/** The notifications of the person, or of the team, as rows. */
export function NotificationList({ scope }: { scope: 'mine' | 'team' }) {
  const search = route.useSearch();
  const navigate = useNavigate();
  const filter = kinds.find((each) => each === oneOf(search.kind));
  const isUnread = oneOf(search.unread) === 'true';
  const list = useNotifications({ scope, filter, isUnread });
  const { dismiss, setRead } = useMarks();
  const items = list.data?.pages.flatMap((page) => page.items) ?? [];
  const isMine = scope === 'mine';
  const go = (change: Record<string, string | undefined>) =>
    void navigate({ to: '.', search: { ...search, ...change }, replace: true });

  const focused = (): Notification | undefined => {
    const uid = document.activeElement?.closest<HTMLElement>('[data-notification]')?.dataset.notification;
    return items.find((each) => each.notification_uid === uid);
  };
  const withFocused = (act: (item: Notification) => void) => () => {
    const item = focused();
    if (item) act(item);
  };
  useKeys([
    { key: 'j', does: 'Next notification', run: () => moveFocus(1) },
    { key: 'k', does: 'Notification before', run: () => moveFocus(-1) },
    ...(isMine
      ? [
          {
            key: 'e',
            does: 'Dismiss the notification',
            run: withFocused((item) => {
              moveFocus(1);
              dismiss(item);
            }),
          },
          {
            key: 'u',
            does: 'Mark the notification as read, or as not read',
            run: withFocused((item) => setRead(item, item.is_read !== true)),
          },
        ]
      : []),
  ]);
  return (
    <Stack pad>
      <Row wrap>
        <ChooseOne
          options={[[undefined, 'All'], ...kinds.map((each) => [each, kindFilters[each].label] as const)]}
          chosen={filter}
          choose={(kind) => go({ kind })}
        />
        {isMine && (
          <Button
            kind="ghost"
            small
            aria-pressed={isUnread}
            onClick={() => go({ unread: isUnread ? undefined : 'true' })}
          >
            Only unread
          </Button>
        )}
      </Row>
      <Problem error={list.error} onRetry={() => void list.refetch()} />
      {list.isPending && !list.error && <SkeletonRows count={6} />}
      {list.isSuccess && items.length === 0 && (
        <Nothing isFiltered={filter !== undefined || isUnread} isMine={isMine} />
      )}
      {items.length > 0 && (
        <Table
          stacked
          aria-label="Notifications"
          className={styles.list}
          columns={[
            { name: 'Kind', width: 130 },
            { name: 'About' },
            { name: 'Since', width: 110 },
            { name: 'Actions', width: isMine ? 220 : 100, spoken: true },
          ]}
        >
          {items.map((item) => (
            <Item
              key={item.notification_uid}
              item={item}
              isMine={isMine}
              dismiss={() => dismiss(item)}
              setRead={(isRead) => setRead(item, isRead)}
            />
          ))}
        </Table>
      )}
      {list.hasNextPage && (
        <More>
          <Button small disabled={list.isFetchingNextPage} onClick={() => void list.fetchNextPage()}>
            Show more
          </Button>
        </More>
      )}
    </Stack>
  );
}

function Nothing({ isFiltered, isMine }: { isFiltered: boolean; isMine: boolean }) {
  if (isFiltered) return <Empty title="Nothing matches">No notification has this kind.</Empty>;
  return (
    <Empty title={isMine ? 'Nothing needs you' : 'Nothing needs the team'} command="bin/runyard run --approval ask '…'">
      Questions and approvals of your runs, plans and pull requests to review, failed runs and revisions to accept are
      listed here until they are done.
    </Empty>
  );
}

/** Returns where the thing of a notification is. */
function placeOf({ kind, run_id: runId, schedule_id: scheduleId, ...ids }: Notification): LinkProps {
  const { automation_id: automationUid, factory_uid: factoryUid } = ids;
  if (runId !== undefined) return { to: '/runs/$runId', params: { runId }, search: {} };
  if (scheduleId !== undefined) return { to: '/schedules/$scheduleId', params: { scheduleId }, search: {} };
  if (automationUid !== undefined && factoryUid !== null)
    return {
      to: '/factories/$factoryUid/automations/$automationUid',
      params: { factoryUid, automationUid },
      search: {},
    };
  if (kind === 'budget') return { to: '/settings/$tab', params: { tab: 'budget' }, search: {} };
  return { to: '/inbox', search: { tab: 'acceptances' } };
}

function Item({
  item,
  isMine,
  dismiss,
  setRead,
}: {
  item: Notification;
  isMine: boolean;
  dismiss: () => void;
  setRead: (isRead: boolean) => void;
}) {
  const { label, icon, tone, does } = kindLooks[item.kind];
  const isUnread = item.is_read === false;
  const title = visibleText(item.title);
  return (
    <tr data-notification={item.notification_uid}>
      <td>
        <Text row tone={tone}>
          <Icon name={icon} small />
          {label}
        </Text>
      </td>
      {/* biome-ignore lint/a11y/useKeyWithClickEvents: a click on the link, also with the key Enter, marks the notification as read */}
      <td onClick={() => isMine && isUnread && setRead(true)}>
        <RunCell>
          {isUnread && (
            <span className={styles.unread} title="Not read">
              <Text spoken>Not read: </Text>
            </span>
          )}
          <Link {...placeOf(item)} className={look({ cut: true, medium: isUnread })}>
            {title}
          </Link>
          <Say cut>{visibleText(lineOf(item))}</Say>
        </RunCell>
      </td>
      <Cell tone="muted">
        <Ago time={item.created_at} />
      </Cell>
      <td>
        <Row className={styles.actions}>
          {item.url === undefined ? (
            <Link {...placeOf(item)} className={look({ link: true })}>
              {does}
            </Link>
          ) : (
            <a href={item.url} target="_blank" rel="noreferrer" className={look({ link: true })}>
              {does}
            </a>
          )}
          {isMine && (
            <>
              <Button
                kind="ghost"
                small
                aria-label={`Mark ${isUnread ? 'read' : 'unread'}: ${title}`}
                onClick={() => setRead(isUnread)}
              >
                {isUnread ? 'Mark read' : 'Mark unread'}
              </Button>
              <Button kind="ghost" small icon="x" aria-label={`Dismiss: ${title}`} onClick={dismiss} />
            </>
          )}
        </Row>
      </td>
    </tr>
  );
}
