import { routes } from '@runyard/contract/routes';
import type { CreateBrowserSessionRequest } from '@runyard/contract/team/browser-sessions';
import type { FastifyInstance } from 'fastify';
import { Refusal, refuse } from '../../../platform/serving/refusal.ts';
import type { RequestOrigin } from '../../../platform/serving/served-route.ts';
import {
  createBrowserSession,
  endBrowserSession,
  endBrowserSessions,
  type NewSession,
} from '../../../team/access/key-management/browser-sessions.ts';
import { mayReadInstallation } from '../../../team/access/keys/operator.ts';
import { passkeyPlaceOf } from '../../../team/access/passkeys/place.ts';
import { joinWithPasskey, signInWithPasskey } from '../../../team/access/passkeys/sign-in.ts';
import { refusePasskey } from '../../../team/access/passkeys/verify.ts';
import { listTeams } from '../../../team/access/people/own-teams.ts';
import { refuseAccept } from '../../../team/access/people/refusals.ts';
import { onlyHost } from '../../../team/code-hosts/url.ts';
import { addRoute } from '../server/add-route.ts';
import { type Authorizer, clientOf, originOf } from '../server/authorize.ts';
import { cookieForPage, csrfTokenOf, dropCookies, keepCookie } from '../server/session-cookie.ts';
import { registerSignOnRoutes } from './sign-on.ts';

const refuseProof = ({ code }: CreateBrowserSessionRequest): Refusal =>
  refuse('not_authorized', {
    detail:
      code === undefined
        ? 'api_key: the key is unknown, has expired or was deleted, or does not belong to a person. Ask an administrator for a new one.'
        : 'This sign-in link was used already, or is older than a minute. Make another: bin/runyard open',
  });

/** Registers the routes that sign browsers in and out. These routes use the headers of the request and of the answer. */
export function registerBrowserSessionRoutes(
  app: FastifyInstance,
  deps: Parameters<typeof registerSignOnRoutes>[1],
): void {
  const { db, baseUrl, log, signing, signOn } = deps;
  const codeHost = onlyHost(deps.settings.RUNYARD_CODE_HOST_URL);
  const { keyIn } = app.getDecorator<Authorizer>('authorizer');
  const finishSignOn = registerSignOnRoutes(app, deps);

  /** Begins a session with a proof that needs no identity provider. */
  const begin = async (body: CreateBrowserSessionRequest, from: RequestOrigin): Promise<NewSession | Refusal> => {
    const { passkey, invitation } = body;
    if (passkey === undefined && invitation === undefined)
      return (await createBrowserSession(db, body, from)) ?? refuseProof(body);
    const place = passkeyPlaceOf(baseUrl());
    if (typeof place === 'string') return refuse('not_authorized', { detail: place });
    const passkeyDeps = { db, signing, place };
    const begun =
      passkey === undefined
        ? invitation && (await joinWithPasskey(passkeyDeps, invitation, signOn.isManagedByRules, from))
        : await signInWithPasskey(passkeyDeps, passkey, from);
    if (begun === undefined) return refuseProof(body);
    if (typeof begun === 'string') return refuseAccept(begun);
    return 'notRight' in begun ? refusePasskey(log, begun) : begun;
  };

  addRoute(app, routes.createBrowserSession, async ({ body, request, reply }) => {
    const cookie = cookieForPage(request, baseUrl());
    if (typeof cookie === 'string') return refuse('not_authorized', { detail: cookie });
    if (body.sign_on !== undefined) return await finishSignOn(body.sign_on, cookie, request, reply);
    const created = await begin(body, originOf(request));
    if (created instanceof Refusal) return created;
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
      ...(codeHost === null ? {} : { code_host: codeHost }),
      ...((await mayReadInstallation(db, principal)) ? { reads_installation: true as const } : {}),
    };
  });
}
