/** The inbox: notifications about runs that need the caller. */
import type { MarkNotificationsResponse, Notification } from '@runyard/contract/inbox/notifications';
import { type RequestCommand, type RowRoute, request } from '../../route-commands/row.ts';

/** Returns what a person does next about a notification. */
const nextOf = ({ kind, run_id: run, url, acceptance }: Notification): string => {
  if (acceptance) return `runyard accept ${acceptance.kind} ${acceptance.uid}`;
  if (kind === 'blocked') return `runyard approve ${run}`;
  if (kind === 'question' || kind === 'answer_question') return `runyard send ${run} 'ANSWER'`;
  return url ?? (run === undefined ? '' : `runyard logs ${run}`);
};

const uids = { usage: '<uids...>', help: 'UIDs of the notifications', member: 'notification_uids' };

/** Returns a line for each notification. */
const linesOf =
  (done: string) =>
  ({ outcomes }: MarkNotificationsResponse): string[] =>
    outcomes.map(({ notification_uid: uid, ok }) => (ok ? `${uid} is ${done}` : `${uid} is not yours`));

const mark = <R extends RowRoute & `${string}Notifications`>(route: R, word: string, about: string, done: string) =>
  request(route, word, about, { arguments: [uids], orJson: true, lines: linesOf(done) } as RequestCommand<R>);

/** The commands of `inbox`. */
export const inbox = [
  request('listNotifications', 'list', 'list your notifications, newest first', {
    isDefault: true,
    flags: {
      '--scope <scope>': 'scope',
      '--kind <kinds...>': 'kind',
      '--factory <uid>': 'factory_uid',
      '--unread': { member: 'is_read', help: 'only those that you have not read', value: false },
      '--limit <count>': 'limit',
    },
    list: {
      of: 'items',
      columns: [
        { header: 'UID', text: ({ notification_uid: uid }) => uid },
        { header: 'KIND', text: ({ kind }) => kind },
        { header: 'READ', text: ({ is_read: isRead }) => (isRead === undefined ? '' : isRead ? 'yes' : 'no') },
        { header: 'SINCE', ago: ({ created_at: at }) => at },
        { header: 'NEXT', text: nextOf },
        { header: 'TITLE', flexible: true, text: ({ title }) => title },
      ],
      none: 'nothing needs you',
    },
  }),
  request('getNotification', 'get', 'show a notification as JSON', { arguments: [{ usage: '<uid>' }] }),
  mark('readNotifications', 'read', 'mark notifications as read', 'read'),
  mark('unreadNotifications', 'unread', 'mark notifications as not read', 'not read'),
  mark('dismissNotifications', 'dismiss', 'remove notifications from your inbox; undo brings them back', 'dismissed'),
  mark(
    'restoreNotifications',
    'undo',
    'return dismissed notifications to your inbox',
    'in your inbox again, unless its cause is over',
  ),
];
