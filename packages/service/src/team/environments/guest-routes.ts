import type { EnvironmentSharing } from '@runyard/contract/environments/environments';
import { maxEnvironmentGuests } from '@runyard/contract/limits';
import { routes } from '@runyard/contract/routes';
import { apiPrefix } from '@runyard/contract/wire/route';
import { notFound, type Refusal, refuse } from '../../platform/serving/refusal.ts';
import type { ServedRoute } from '../../platform/serving/served-route.ts';
import type { Database } from '../../platform/store/database/database.ts';
import { isUuid } from '../../platform/store/database/uuid.ts';
import type { Principal } from '../access/keys/principal.ts';
import { serve, serveOnce } from '../access/serve.ts';
import { isUid } from '../access/teams/uid.ts';
import { lockGuests, readGuestsOf, removeGuest } from './guests.ts';
import {
  answerInvitation,
  inviteGuest,
  leaveEnvironment,
  listInvitations,
  listOwnInvitations,
  withdrawInvitation,
} from './invitations.ts';
import { setLinkSharing } from './link.ts';

interface GuestRouteDeps {
  readonly db: Database;
  baseUrl(): string;
}

/** Routes for the guests of an environment, their invitations and answers, and sharing by link. */
export function guestRoutes({ db, baseUrl }: GuestRouteDeps): readonly ServedRoute[] {
  const share = async (principal: Principal, uid: string, isShared: boolean): Promise<EnvironmentSharing | Refusal> => {
    if (!isUid(uid) || !(await setLinkSharing(db, principal, uid, isShared))) return notFound('environment');
    const url = `${baseUrl()}${apiPrefix}/agent/environments/${uid}`;
    return { uid, is_link_shared: isShared, ...(isShared ? { url } : {}) };
  };

  const answer = async (principal: Principal, id: string, isAccepted: boolean) => {
    const wasThere = isUuid(id) && (await answerInvitation(db, principal, id, isAccepted));
    return wasThere ? { success: true as const } : notFound('invitation');
  };

  return [
    serve(routes.listEnvironmentGuests, async ({ params: { uid }, principal }) => {
      if (!isUid(uid)) return notFound('environment');
      return await db.transaction(async (tx) => {
        if (!(await lockGuests(tx, principal.teamId, uid))) return notFound('environment');
        return { guests: await readGuestsOf(tx, uid), invitations: await listInvitations(tx, uid) };
      });
    }),

    serveOnce(routes.inviteEnvironmentGuest, {
      work: async (tx, { params: { uid }, principal, body }) => {
        const invited = isUid(uid) ? await inviteGuest(tx, principal, uid, body) : null;
        if (invited !== 'too_many') return invited ?? notFound('environment');
        const detail = `An environment has at most ${maxEnvironmentGuests} guests and invitations; remove one.`;
        return refuse('conflict', { detail });
      },
    }),

    serve(routes.withdrawEnvironmentInvitation, async ({ params: { uid, guestInvitationId: id }, principal }) => {
      const wasThere = isUid(uid) && isUuid(id) && (await withdrawInvitation(db, principal, uid, id));
      return wasThere ? { success: true as const } : notFound('invitation');
    }),

    serve(routes.listEnvironmentInvitations, async ({ principal }) => ({
      invitations: await listOwnInvitations(db, principal),
    })),

    serve(routes.acceptEnvironmentInvitation, ({ params, principal }) =>
      answer(principal, params.guestInvitationId, true),
    ),
    serve(routes.declineEnvironmentInvitation, ({ params, principal }) =>
      answer(principal, params.guestInvitationId, false),
    ),

    serve(routes.leaveEnvironment, async ({ params: { uid }, principal }) => {
      const hasLeft = isUid(uid) && (await leaveEnvironment(db, principal, uid));
      return hasLeft ? { success: true as const } : notFound('environment of another team');
    }),

    serve(routes.removeEnvironmentGuest, async ({ params, principal }) => {
      const { uid, userUid } = params;
      const wasThere =
        isUid(uid) && isUid(userUid) && (await db.transaction((tx) => removeGuest(tx, principal, uid, userUid)));
      return wasThere ? { success: true as const } : notFound('guest');
    }),

    serve(routes.shareEnvironment, ({ params, principal }) => share(principal, params.uid, true)),
    serve(routes.unshareEnvironment, ({ params, principal }) => share(principal, params.uid, false)),
  ];
}
