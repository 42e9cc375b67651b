import { maxEnvironmentGuests } from '@runyard/contract/limits';
import { routes } from '@runyard/contract/routes';
import type { FastifyInstance } from 'fastify';
import { isUid } from '../../access/teams/uid.ts';
import { admitGuest, listGuests, removeGuest } from '../../environments/guests.ts';
import { addRoute } from '../server/add-route.ts';
import type { ServiceDeps } from '../server/deps.ts';
import { notFound, refuse } from '../server/problem.ts';

/** Registers list, admit and remove of the guests of an environment. */
export function registerEnvironmentGuestRoutes(app: FastifyInstance, { db }: ServiceDeps): void {
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
}
