import { z } from 'zod';
import { type AllowKeys, teamReads } from '../wire/access.ts';
import type { Route } from '../wire/route.ts';
import {
  CountNotificationsQuery,
  CountNotificationsResponse,
  ListNotificationsQuery,
  ListNotificationsResponse,
  MarkNotificationsRequest,
  MarkNotificationsResponse,
  Notification,
} from './notifications.ts';

const path = '/factory-inbox';

/** Only people have an inbox. Even a viewer may mark the own notifications, because a mark has no effect on other people. */
const people = { user: 'viewer' } as const satisfies AllowKeys;

const mark = <const Path extends string>(action: Path, summary: string, description: string) =>
  ({
    method: 'POST',
    path: `${path}/notifications/${action}`,
    tag: 'inbox',
    summary,
    description,
    allow: people,
    body: MarkNotificationsRequest,
    answer: { status: 200, description: 'The outcome for each notification', schema: MarkNotificationsResponse },
  }) as const satisfies Route;

export const inboxRoutes = {
  listNotifications: {
    method: 'GET',
    path,
    tag: 'inbox',
    summary: 'List the inbox',
    description:
      'Lists notifications that need a person and are not resolved: questions and permission requests of runs, plans and pull requests to review, failed runs, and revisions to accept. Runs that belong to no factory are listed too. A notification is resolved, and leaves the list, when its cause is over: the question is answered, the run continues, the pull request is merged, closed or reviewed, or the task is complete. The person as whom a run acts is asked. If the run acts as no person, the person who started the run is asked. If there is no such person either, the administrators of the team are asked to answer questions. The scope `mine` needs the key or the session of a person.',
    allow: teamReads,
    query: ListNotificationsQuery,
    answer: { status: 200, description: 'A page of notifications, newest first', schema: ListNotificationsResponse },
    errors: {
      400: 'A wrong value, a cursor of another list, or `recipient_uid` names another person in the scope `mine`',
    },
  },
  countNotifications: {
    method: 'GET',
    path: `${path}/count`,
    tag: 'inbox',
    summary: 'Count the inbox',
    description: 'The number of notifications in the list with the scope `mine`.',
    allow: people,
    query: CountNotificationsQuery,
    answer: { status: 200, description: 'The numbers', schema: CountNotificationsResponse },
  },
  getNotification: {
    method: 'GET',
    path: `${path}/notifications/{notificationUid}`,
    tag: 'inbox',
    summary: 'Read a notification',
    allow: teamReads,
    params: z.object({ notificationUid: z.string().meta({ description: 'UID of the notification' }) }),
    answer: { status: 200, description: 'The notification', schema: Notification },
    errors: { 404: 'No such notification, or it is resolved or belongs to another team' },
  },
  readNotifications: mark('read', 'Mark notifications as read', 'Has no effect on other people.'),
  unreadNotifications: mark('unread', 'Mark notifications as not read', 'Has no effect on other people.'),
  dismissNotifications: mark(
    'dismiss',
    'Dismiss notifications',
    'Removes notifications from the inbox of the caller, and from the inbox of nobody else. If all recipients have dismissed a notification, it is in no list.',
  ),
  restoreNotifications: mark(
    'restore',
    'Take dismissals back',
    'Returns dismissed notifications to the inbox of the caller, unless their cause is over.',
  ),
} as const satisfies Record<string, Route>;
