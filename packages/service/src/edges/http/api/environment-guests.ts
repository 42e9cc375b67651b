import type { EnvironmentSharing } from '@runyard/contract/environments';
import { maxEnvironmentGuests } from '@runyard/contract/limits';
import { apiPrefix } from '@runyard/contract/route';
import { routes } from '@runyard/contract/routes';
import type { FastifyInstance } from 'fastify';
import { notFound, type Refusal, refuse } from '../../../platform/serving/refusal.ts';
import type { Principal } from '../../../team/access/keys/principal.ts';
import { isUid } from '../../../team/access/teams/uid.ts';
import { admitGuest, listGuests, removeGuest } from '../../../team/environments/guests.ts';
import { setLinkSharing } from '../../../team/environments/link.ts';
import { addRoute } from '../server/add-route.ts';
import type { ServiceDeps } from '../server/deps.ts';

/** Registers list, admit and remove of the guests of an environment, and its sharing by link. */
export function registerEnvironmentGuestRoutes(app: FastifyInstance, deps: ServiceDeps): void {
  const { db } = deps;
  addRoute(app, routes.listEnvironmentGuests, async ({ params, principal }) => {
    const guests = isUid(params.uid) ? await listGuests(db, principal.teamId, params.uid) : null;
    return guests ? { guests } : notFound('environment');
  });

  addRoute(app, routes.admitEnvironmentGuest, async ({ params, principal }) => {
    const { uid, userUid } = params;
    const guest = isUid(uid) && isUid(userUid) ? await admitGuest(db, principal, uid, userUid) : null;
    if (guest !== 'too_many') return guest ?? notFound('environment or person');
    return refuse('conflict', { detail: `An environment has at most ${maxEnvironmentGuests} guests; remove one.` });
  });

  addRoute(app, routes.removeEnvironmentGuest, async ({ params, principal }) => {
    const { uid, userUid } = params;
    const wasThere =
      isUid(uid) && isUid(userUid) && (await db.transaction((tx) => removeGuest(tx, principal, uid, userUid)));
    return wasThere ? { success: true as const } : notFound('guest');
  });

  const share = async (principal: Principal, uid: string, isShared: boolean): Promise<EnvironmentSharing | Refusal> => {
    if (!isUid(uid) || !(await setLinkSharing(db, principal, uid, isShared))) return notFound('environment');
    const url = `${deps.baseUrl()}${apiPrefix}/agent/environments/${uid}`;
    return { uid, is_link_shared: isShared, ...(isShared ? { url } : {}) };
  };
  addRoute(app, routes.shareEnvironment, ({ params, principal }) => share(principal, params.uid, true));
  addRoute(app, routes.unshareEnvironment, ({ params, principal }) => share(principal, params.uid, false));
}
