/** The routes of single sign-on, and the function that completes a browser's sign-in after the provider has answered. */

import { maxExchangesPerSignOn } from '@runyard/contract/limits';
import { routes } from '@runyard/contract/routes';
import type { BrowserSession } from '@runyard/contract/team/browser-sessions';
import { signOnMinutes, signOnPath } from '@runyard/contract/team/sign-on';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { notFound, type Refusal, refuse } from '../../../platform/serving/refusal.ts';
import { refuseAccept } from '../../../team/access/people/refusals.ts';
import { makeBuckets } from '../../../team/access/rate-limits/buckets.ts';
import { checksOf, newAttempt, openAttempt, sealAttempt } from '../../../team/access/sign-on/attempt.ts';
import { type SignInRefusal, signInPerson } from '../../../team/access/sign-on/sign-in.ts';
import { addRoute } from '../server/add-route.ts';
import { type Authorizer, originOf } from '../server/authorize.ts';
import type { AccessParts, ServiceDeps } from '../server/deps.ts';
import {
  type CookieForPage,
  cookieForSignOn,
  dropCookie,
  dropOldSignOns,
  keepCookie,
  signOnCookieOf,
} from '../server/session-cookie.ts';

/** Maximum of sign-ins in this process that wait for a provider. Each of them ends at its deadline. */
const maxWaiting = 200;

const beginAgain = 'Begin the sign-in again.';
const denied = (detail: string): Refusal => refuse('not_authorized', { detail });
const away = (name: string): Refusal =>
  refuse('resource_unavailable', {
    status: 503,
    detail: `${name} does not answer as it should. Try again; the operator of this service finds the reason in its log.`,
    headers: { 'retry-after': '5' },
  });
const misconfigured = (name: string, reason: string): Refusal =>
  refuse('resource_unavailable', {
    status: 503,
    detail: `Sign-ins with ${name} do not work now: ${reason}. The operator of this service can correct it.`,
  });

function refuseSignIn(outcome: SignInRefusal, name: string): Refusal {
  if ('invitation' in outcome) return refuseAccept(outcome.invitation);
  if (outcome.refused === 'no_groups')
    return denied(
      `${name} has signed you in, but its answer does not name your groups: ${outcome.why}. The operator of this service can correct it.`,
    );
  if (outcome.refused === 'used') return denied(`The answer of ${name} was used already. ${beginAgain}`);
  return denied(
    `${name} has signed you in, but you are in no team here. Ask an administrator for an invitation, or for a group that a rule names.`,
  );
}

type FinishSignOn = (
  query: string,
  sessionCookie: CookieForPage,
  request: FastifyRequest,
  reply: FastifyReply,
) => Promise<BrowserSession | Refusal>;

/** Registers the routes. Returns the function that completes a sign-in. `query` is the query with which the provider sent the browser back. */
export function registerSignOnRoutes(
  app: FastifyInstance,
  deps: AccessParts & Pick<ServiceDeps, 'db' | 'baseUrl' | 'log' | 'settings'>,
): FinishSignOn {
  const { baseUrl, signOn, vault, log } = deps;
  const redirectUri = () => `${baseUrl()}${signOnPath}`;
  const { admitSignOn } = app.getDecorator<Authorizer>('authorizer');
  const exchanges = makeBuckets({ quota: maxExchangesPerSignOn, windowSeconds: signOnMinutes * 60 });
  let waiting = 0;

  /** Does work that waits for a provider. Throws a refusal if the client's address signs in too often, or if too many sign-ins already wait. */
  const wait = async <T>(request: FastifyRequest, name: string, work: () => Promise<T>): Promise<T> => {
    admitSignOn(request);
    if (waiting >= maxWaiting) throw away(name);
    waiting += 1;
    try {
      return await work();
    } finally {
      waiting -= 1;
    }
  };

  addRoute(app, routes.listSignOnProviders, async () => ({
    providers: signOn.providers.map(({ id, name }) => ({ id, name })),
  }));

  addRoute(app, routes.startSignOn, async ({ body, request, reply }) => {
    const attempt = newAttempt(body);
    const checks = checksOf(attempt);
    const cookie = cookieForSignOn(request, baseUrl(), checks.state);
    if (typeof cookie === 'string') return denied(cookie);
    const provider = signOn.providers.find(({ id }) => id === body.provider);
    if (provider === undefined) return notFound('identity provider');
    const { name } = provider;
    const begun = await wait(request, name, () => provider.authorizationUrl(checks, redirectUri()));
    if (begun.kind !== 'url') return begun.isSetting ? misconfigured(name, begun.reason) : away(name);
    const { url } = begun;
    const kept = keepCookie(cookie, sealAttempt(vault, attempt), new Date(attempt.endsAtMs).toISOString());
    reply.header('set-cookie', [kept, ...dropOldSignOns(request, cookie)]);
    return { url };
  });

  return async (query, sessionCookie, request, reply) => {
    const state = new URLSearchParams(query).get('state') ?? '';
    const cookie = cookieForSignOn(request, baseUrl(), state);
    if (typeof cookie === 'string') return denied(cookie);
    const attempt = openAttempt(vault, signOnCookieOf(request, cookie) ?? '');
    const provider = signOn.providers.find(({ id }) => id === attempt?.provider);
    if (attempt === null || provider === undefined)
      return denied(`The sign-in did not begin in this browser, or took too long. ${beginAgain}`);
    const { name } = provider;
    const checks = checksOf(attempt);
    if (exchanges.read(checks.state, performance.now()).remaining < 1)
      return denied(`The sign-in was tried too often. ${beginAgain}`);
    const answer = await wait(request, name, () => {
      exchanges.take(checks.state, performance.now());
      return provider.exchange(redirectUri(), query, checks);
    });
    // The service has not used the code, so the page can send the code again.
    if (answer.kind === 'unavailable') return answer.isSetting ? misconfigured(name, answer.reason) : away(name);
    const drop = dropCookie(cookie);
    reply.header('set-cookie', drop);
    if (answer.kind !== 'person')
      return denied(
        answer.kind === 'refused'
          ? `${name} has refused the sign-in (${answer.reason}). ${beginAgain}`
          : `The answer of ${name} is not valid ${answer.isSetting ? `here: ${answer.reason}` : 'for this browser'}. ${beginAgain}`,
      );
    const outcome = await signInPerson(deps, provider, attempt, answer.person, originOf(request));
    if (!('key' in outcome)) {
      const { groups, subject } = answer.person;
      const found =
        groups.kind === 'unknown'
          ? groups.why
          : `${groups.names.length} groups, first ${groups.names.slice(0, 5).join(', ')}`;
      const reason = 'invitation' in outcome ? outcome.invitation : outcome.refused;
      log.warn({ provider: provider.id, subject, reason, groups: found.slice(0, 500) }, 'a sign-in was refused');
      return refuseSignIn(outcome, name);
    }
    const { key, session } = outcome;
    // Without `removeHeader`, `header` would add a second `Set-Cookie` and keep the first.
    reply.removeHeader('set-cookie').header('set-cookie', [drop, keepCookie(sessionCookie, key, session.expires_at)]);
    return { ...session, ...(attempt.next === undefined ? {} : { next: attempt.next }) };
  };
}
