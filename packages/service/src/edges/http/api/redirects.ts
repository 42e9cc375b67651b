import { routes } from '@runyard/contract/routes';
import type { FastifyInstance } from 'fastify';
import { refuse } from '../../../platform/serving/refusal.ts';
import { isUuid } from '../../../platform/store/database/uuid.ts';
import { findConversationRedirect, findSessionRedirect } from '../../../runs/runs/read/redirects.ts';
import { addRoute } from '../server/add-route.ts';
import type { ServiceDeps } from '../server/deps.ts';

/** Registers the redirects for links of sessions and conversations. They need no key, because request and answer contain only ids. */
export function registerRedirectRoutes(app: FastifyInstance, { db }: ServiceDeps): void {
  addRoute(app, routes.checkSessionRedirect, async ({ params: { sessionUuid } }) => {
    const found = isUuid(sessionUuid) ? await findSessionRedirect(db, sessionUuid) : null;
    if (!found) return refuse('resource_not_found', { detail: 'There is no such session.' });
    return found.conversationId === undefined ? {} : { conversation_id: found.conversationId };
  });

  addRoute(app, routes.checkConversationRedirect, async ({ params: { conversationId } }) => {
    const found = isUuid(conversationId) ? await findConversationRedirect(db, conversationId) : null;
    if (!found) return refuse('resource_not_found', { detail: 'There is no such conversation.' });
    return found.sessionId === undefined ? {} : { session_id: found.sessionId };
  });
}
