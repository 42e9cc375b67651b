import type { EnvironmentSharing } from '@runyard/contract/environments';
import { maxEnvironmentGuests } from '@runyard/contract/limits';
import { apiPrefix } from '@runyard/contract/route';
import { routes } from '@runyard/contract/routes';
import { notFound, type Refusal, refuse } from '../../platform/serving/refusal.ts';
import type { ServedRoute } from '../../platform/serving/served-route.ts';
import type { Database } from '../../platform/store/database/database.ts';
import type { Principal } from '../access/keys/principal.ts';
import { serve } from '../access/serve.ts';
import { isUid } from '../access/teams/uid.ts';
import { admitGuest, listGuests, removeGuest } from './guests.ts';
import { setLinkSharing } from './link.ts';

interface GuestRouteDeps {
  readonly db: Database;
  baseUrl(): string;
}

/** List, admit and remove of the guests of an environment, and its sharing by link. */
export function guestRoutes({ db, baseUrl }: GuestRouteDeps): readonly ServedRoute[] {
  const share = async (principal: Principal, uid: string, isShared: boolean): Promise<EnvironmentSharing | Refusal> => {
    if (!isUid(uid) || !(await setLinkSharing(db, principal, uid, isShared))) return notFound('environment');
    const url = `${baseUrl()}${apiPrefix}/agent/environments/${uid}`;
    return { uid, is_link_shared: isShared, ...(isShared ? { url } : {}) };
  };

  return [
    serve(routes.listEnvironmentGuests, async ({ params, principal }) => {
      const guests = isUid(params.uid) ? await listGuests(db, principal.teamId, params.uid) : null;
      return guests ? { guests } : notFound('environment');
    }),

    serve(routes.admitEnvironmentGuest, async ({ params, principal }) => {
      const { uid, userUid } = params;
      const guest = isUid(uid) && isUid(userUid) ? await admitGuest(db, principal, uid, userUid) : null;
      if (guest !== 'too_many') return guest ?? notFound('environment or person');
      return refuse('conflict', { detail: `An environment has at most ${maxEnvironmentGuests} guests; remove one.` });
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
