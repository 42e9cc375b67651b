import { routes } from '@runyard/contract/routes';
import type { FastifyInstance } from 'fastify';
import { listChanges } from '../../../team/access/audit/list.ts';
import { addRoute } from '../server/add-route.ts';
import type { ServiceDeps } from '../server/deps.ts';
import { invalid } from '../server/problem.ts';

/** Registers the list of the audit log. */
export function registerAuditRoutes(app: FastifyInstance, { db, signing }: ServiceDeps): void {
  addRoute(app, routes.listAuditEntries, async ({ principal, query }) => {
    const page = await listChanges(db, signing, principal.teamId, query);
    const message = 'is not a cursor of this list; send the query of the page before';
    return page ?? invalid([{ path: 'cursor', message }]);
  });
}
