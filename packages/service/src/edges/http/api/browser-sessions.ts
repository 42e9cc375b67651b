import { routes } from '@runyard/contract/routes';
import type { FastifyInstance } from 'fastify';
import { refuse } from '../../../platform/serving/refusal.ts';
import {
  createBrowserSession,
  endBrowserSession,
  endBrowserSessions,
} from '../../../team/access/key-management/browser-sessions.ts';
import { mayReadInstallation } from '../../../team/access/keys/operator.ts';
import { listTeams } from '../../../team/access/people/own-teams.ts';
import { addRoute } from '../server/add-route.ts';
import { type Authorizer, clientOf, originOf } from '../server/authorize.ts';
import type { ServiceDeps } from '../server/deps.ts';
import { cookieForPage, csrfTokenOf, dropCookies, keepCookie } from '../server/session-cookie.ts';
import { registerSignOnRoutes } from './sign-on.ts';

/** Registers the routes that sign browsers in and out. These routes use the headers of the request and of the answer. */
export function registerBrowserSessionRoutes(app: FastifyInstance, deps: ServiceDeps): void {
  const { db, baseUrl } = deps;
  const { keyIn } = app.getDecorator<Authorizer>('authorizer');
  const finishSignOn = registerSignOnRoutes(app, deps);

  addRoute(app, routes.createBrowserSession, async ({ body, request, reply }) => {
    const cookie = cookieForPage(request, baseUrl());
    if (typeof cookie === 'string') return refuse('not_authorized', { detail: cookie });
    if (body.sign_on !== undefined) return await finishSignOn(body.sign_on, cookie, request, reply);
    const created = await createBrowserSession(db, body, originOf(request));
    if (created === null) {
      const detail =
        body.code === undefined
          ? 'api_key: the key is unknown, has expired or was deleted, or does not belong to a person. Ask an administrator for a new one.'
          : 'This sign-in link was used already, or is older than a minute. Make another: bin/runyard open';
      return refuse('not_authorized', { detail });
    }
    reply.header('set-cookie', keepCookie(cookie, created.key, created.session.expires_at));
    return created.session;
  });

  addRoute(app, routes.endBrowserSession, async ({ principal, request, reply }) => {
    if (!(await endBrowserSession(db, principal)))
      return refuse('resource_not_found', { detail: 'The key does not belong to a browser session.' });
    reply.header('set-cookie', dropCookies(request));
    return { success: true as const };
  });

  addRoute(app, routes.endBrowserSessions, async ({ principal, request, reply }) => {
    await endBrowserSessions(db, principal);
    if (principal.kind === 'session') reply.header('set-cookie', dropCookies(request));
    return { success: true as const };
  });

  addRoute(app, routes.getSession, async ({ principal, request }) => {
    const { keyId, creator, browserSession } = principal;
    const { uid, displayName, email } = creator;
    const { address, scheme, host, undeclaredProxy } = clientOf(request);
    return {
      kind: browserSession ? ('session' as const) : ('user' as const),
      uid: keyId,
      user: { type: creator.kind, uid, display_name: displayName, ...(email === undefined ? {} : { email }) },
      teams: await listTeams(db, principal),
      ...(browserSession ? { csrf_token: csrfTokenOf(keyIn(request)), expires_at: browserSession.expiresAt } : {}),
      base_url: baseUrl(),
      client: {
        address,
        scheme,
        ...(host === undefined ? {} : { host }),
        ...(undeclaredProxy === undefined ? {} : { undeclared_proxy: undeclaredProxy }),
      },
      ...((await mayReadInstallation(db, principal)) ? { reads_installation: true as const } : {}),
    };
  });
}
