import { routes } from '@runyard/contract/routes';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { refuse } from '../../../platform/serving/refusal.ts';
import { createBrowserSession } from '../../../team/access/key-management/browser-sessions.ts';
import { addRoute } from '../server/add-route.ts';
import { originOf } from '../server/authorize.ts';
import type { ServiceDeps } from '../server/deps.ts';

/**
 * Returns whether a page of this service sent the request. Browsers send `Origin` with every POST, and a page cannot set it
 * (Fetch, 3.2); they send `Sec-Fetch-Site` on https and on localhost.
 */
function isFromOwnPage({ headers }: FastifyRequest, baseUrl: string): boolean {
  const site = headers['sec-fetch-site'];
  if (site !== undefined && site !== 'same-origin') return false;
  const origin = URL.parse(headers.origin ?? '');
  return origin !== null && (origin.origin === URL.parse(baseUrl)?.origin || origin.host === headers.host);
}

/** Registers the browser sessions that the codes of sign-in links open. */
export function registerBrowserSessionRoutes(app: FastifyInstance, { db, baseUrl }: ServiceDeps): void {
  addRoute(app, routes.createBrowserSession, async ({ body, request }) => {
    if (!isFromOwnPage(request, baseUrl()))
      return refuse('not_authorized', { detail: 'Only the pages of this service can sign in a browser.' });
    const session = await createBrowserSession(db, body.code, originOf(request));
    const detail = 'This sign-in link was used already, or is older than a minute. Make another: bin/runyard open';
    return session ?? refuse('not_authorized', { detail });
  });
}
