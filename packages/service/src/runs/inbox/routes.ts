import type {
  ListNotificationsQuery,
  ListNotificationsResponse,
  Notification,
} from '@runyard/contract/inbox/notifications';
import { routes } from '@runyard/contract/routes';
import type { WaitingContent } from '@runyard/contract/runs/acceptances';
import { isAtLeast } from '@runyard/contract/wire/access';
import type { Signer } from '../../platform/secrets/signer.ts';
import { invalid, notFound, type Refusal, refuse, wrongCursor } from '../../platform/serving/refusal.ts';
import type { ServedRoute } from '../../platform/serving/served-route.ts';
import { readPage } from '../../platform/store/cursor.ts';
import type { Database } from '../../platform/store/database/database.ts';
import { greatestUuid, isUuid } from '../../platform/store/database/uuid.ts';
import type { Principal } from '../../team/access/keys/principal.ts';
import { serve } from '../../team/access/serve.ts';
import { notificationsOfAcceptances, uidOfAcceptance } from './acceptances.ts';
import { type ReadTasks, toNotification } from './items.ts';
import { keepAcceptances, type Mark, markNotifications, unknownUids } from './marks.ts';
import {
  countOfPerson,
  type NotificationRow,
  readNotification,
  readOfMembers,
  readOfPerson,
  type Wanted,
} from './rows.ts';

export interface InboxDeps {
  readonly db: Database;
  readonly signing: Signer;
  /** Returns the revisions that wait for the acceptance of a person. */
  readonly listWaiting: (principal: Principal) => Promise<WaitingContent[]>;
  readonly tasksOf: ReadTasks;
}

const personOf = ({ teamId, creator }: Principal) => ({ teamId, uid: creator.uid, email: creator.email });

/** Routes of the inbox. */
export function inboxRoutes(deps: InboxDeps): readonly ServedRoute[] {
  const { db } = deps;

  /** Returns the notifications of the caller about acceptances. Viewers accept nothing. */
  const acceptancesOf = async (principal: Principal) =>
    principal.creator.kind === 'user' && isAtLeast(principal.role, 'member')
      ? await notificationsOfAcceptances(db, personOf(principal), await deps.listWaiting(principal))
      : [];

  const toItems = async (teamId: string, rows: readonly NotificationRow[], withRead: boolean) => {
    const conversations = rows.flatMap(({ conversation_id: id, factory_uid }) =>
      factory_uid === null || id === null ? [] : [id],
    );
    const tasks = await deps.tasksOf(teamId, conversations);
    return rows.map((row) => toNotification(row, tasks.get(row.conversation_id ?? ''), withRead));
  };

  const list = async (
    principal: Principal,
    {
      scope,
      recipient_uid: recipient,
      factory_uid: factoryUid,
      kind: kinds,
      is_read: isRead,
      ...page
    }: ListNotificationsQuery,
  ): Promise<ListNotificationsResponse | Refusal> => {
    const { teamId, creator } = principal;
    const isMine = scope === 'mine';
    const hasAcceptances = isMine && (kinds === undefined || kinds.includes('acceptance'));
    const ofAcceptances = (hasAcceptances ? await acceptancesOf(principal) : []).filter(
      (each) =>
        (isRead === undefined || each.is_read === isRead) &&
        (factoryUid === undefined || each.factory_uid === factoryUid),
    );
    const read = async (before: string, count: number): Promise<Notification[]> => {
      const wanted: Wanted = { teamId, factoryUid, kinds, before, count };
      const rows = isMine
        ? await readOfPerson(db, wanted, creator.uid, isRead)
        : await readOfMembers(db, wanted, recipient);
      const further = ofAcceptances.filter(({ notification_uid: uid }) => uid < before);
      return [...(await toItems(teamId, rows, isMine)), ...further]
        .sort((a, b) => (a.notification_uid < b.notification_uid ? 1 : -1))
        .slice(0, count);
    };
    const found = await readPage(deps.signing, page, {
      list: ['inbox', teamId, creator.uid, scope, recipient, factoryUid, kinds, isRead],
      read: (after, count) => read(after?.id ?? greatestUuid, count),
      positionOf: ({ notification_uid: id }: Notification) => ({ value: null, id }),
    });
    return found === null ? wrongCursor() : { items: [...found.page], page_info: found.page_info };
  };

  const mark = async (principal: Principal, change: Mark, uids: readonly string[]) => {
    const person = personOf(principal);
    const unknown = new Set(await unknownUids(db, uids));
    if (unknown.size > 0 && isAtLeast(principal.role, 'member')) {
      const waiting = (await deps.listWaiting(principal)).map((content) => uidOfAcceptance(person, content));
      await keepAcceptances(
        db,
        person,
        waiting.filter((uid) => unknown.has(uid)),
      );
    }
    return { outcomes: await markNotifications(db, person, change, uids) };
  };

  return [
    serve(routes.listNotifications, async ({ principal, query }) => {
      if (query.scope === 'team') return await list(principal, query);
      if (principal.creator.kind !== 'user')
        return refuse('not_authorized', { detail: 'Only people have an inbox of their own; use scope=team.' });
      if (query.recipient_uid !== undefined && query.recipient_uid !== principal.creator.uid)
        return invalid([{ path: 'recipient_uid', message: 'must be your UID with the scope mine; use scope=team' }]);
      return await list(principal, query);
    }),

    serve(routes.countNotifications, async ({ principal, query: { factory_uid: factoryUid, kind: kinds } }) => {
      const { teamId, creator } = principal;
      const counted = await countOfPerson(db, { teamId, factoryUid, kinds }, creator.uid);
      const wantsAcceptances = kinds === undefined || kinds.includes('acceptance');
      const ofAcceptances = (wantsAcceptances ? await acceptancesOf(principal) : []).filter(
        (each) => factoryUid === undefined || each.factory_uid === factoryUid,
      );
      return {
        total: counted.total + ofAcceptances.length,
        unread: counted.unread + ofAcceptances.filter(({ is_read }) => !is_read).length,
      };
    }),

    serve(routes.getNotification, async ({ principal, params: { notificationUid: uid } }) => {
      const { teamId, creator } = principal;
      const row = isUuid(uid) ? await readNotification(db, teamId, uid, creator.uid) : null;
      const [item] = row ? await toItems(teamId, [row], true) : [];
      const found =
        item ?? (await acceptancesOf(principal)).find((each) => each.notification_uid === uid.toLowerCase());
      return found ?? notFound('notification');
    }),

    serve(routes.readNotifications, ({ principal, body }) => mark(principal, 'read', body.notification_uids)),
    serve(routes.unreadNotifications, ({ principal, body }) => mark(principal, 'unread', body.notification_uids)),
    serve(routes.dismissNotifications, ({ principal, body }) => mark(principal, 'dismiss', body.notification_uids)),
    serve(routes.restoreNotifications, ({ principal, body }) => mark(principal, 'restore', body.notification_uids)),
  ];
}
