import { routes } from '@runyard/contract/routes';
import type { FastifyInstance } from 'fastify';
import { createKey, deleteKey, listKeys } from '../keys/manage.ts';
import type { Principal } from '../keys/principal.ts';
import { isUuid } from '../runs/uuid.ts';
import { addRoute } from './add-route.ts';
import type { ServiceDeps } from './deps.ts';
import { notFound, type Refusal, refuse } from './problem.ts';

/** A key that agents hold must not make more keys: what runs in a sandbox could outlive its run by it. */
const refuseAgents = ({ kind }: Principal): Refusal | null =>
  kind === 'agent' ? refuse('not_authorized', { detail: 'Agent keys do not manage keys; use a personal key.' }) : null;

/** Registers list, create and delete of API keys. */
export function registerKeyRoutes(app: FastifyInstance, { db }: ServiceDeps): void {
  addRoute(app, routes.listKeys, async ({ principal }) => {
    return refuseAgents(principal) ?? { keys: await listKeys(db, principal) };
  });

  addRoute(app, routes.createKey, async ({ principal, body, reply }) => {
    const refused = refuseAgents(principal);
    if (refused) return refused;
    if (body.kind === 'agent' && principal.role !== 'admin') {
      return refuse('not_authorized', { detail: 'Agent keys are made by administrators of the team.' });
    }
    reply.header('cache-control', 'no-store');
    return await createKey(db, principal, body);
  });

  addRoute(app, routes.deleteKey, async ({ principal, params }) => {
    const refused = refuseAgents(principal);
    if (refused) return refused;
    const wasThere = isUuid(params.uid) && (await deleteKey(db, principal, params.uid));
    return wasThere ? { success: true as const } : notFound('key');
  });
}
