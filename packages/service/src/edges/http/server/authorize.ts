/** Enforces the `allow` of each route. No other code checks the keys and run tokens of requests. */
import { type Allow, type AllowKeys, type AllowRun, isAtLeast } from '@runyard/contract/wire/access';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { count } from '../../../platform/metrics/record.ts';
import { checkSignedUrl, type SignedTarget } from '../../../platform/secrets/signed-urls.ts';
import { pausedCopy, type Refusal, refuse } from '../../../platform/serving/refusal.ts';
import type { RequestOrigin } from '../../../platform/serving/served-route.ts';
import type { Client, TrustedProxies } from '../../../platform/serving/trusted-proxies.ts';
import type { Database } from '../../../platform/store/database/database.ts';
import { onlyReports, stoppingAttempt } from '../../../runs/executions/run-tokens/attempt.ts';
import {
  authenticateRunToken,
  identifyRunToken,
  type RunIdentity,
} from '../../../runs/executions/run-tokens/sessions.ts';
import { readChildRunsPermission } from '../../../runs/runs/tree/permission.ts';
import type { KeyDirectory } from '../../../team/access/keys/directory.ts';
import type { Principal } from '../../../team/access/keys/principal.ts';
import { checkBodyPermission, checkPermission, type Permission } from '../../../team/access/permission.ts';
import type { RateLimits, RateOutcome } from '../../../team/access/rate-limits/rate-limits.ts';
import type { WorkerPrincipal } from '../../workers/rights.ts';
import type { ServiceDeps } from './deps.ts';
import { refusalOfForged, sessionKeyOf } from './session-cookie.ts';

/** The caller of a request: the owner of a key, the execution of a run token, or neither. */
export interface Caller {
  readonly principal: Principal | null;
  readonly session: RunIdentity | null;
}

export interface Authorizer {
  /** Returns the hook that runs before the body is read. The hook throws a refusal if the route does not accept the caller. */
  forRoute(allow: Allow): (request: FastifyRequest, reply: FastifyReply) => Promise<void>;
  /** Throws a refusal if the route does not accept this body from this caller. */
  checkBody(allow: Allow, request: FastifyRequest, body: unknown): void;
  /** Throws a refusal if the route is only for runs that may start other runs, and the calling run has no permission to start runs. */
  checkRun(request: FastifyRequest): Promise<void>;
  /** Throws a refusal if the address of the client signs in too often. Called before each request to an identity provider. */
  admitSignOn(request: FastifyRequest): void;
  /** Returns the caller that the hook found. */
  callerOf(request: FastifyRequest): Caller;
  /** Returns the raw key from the header or, without a header, from the cookie of the session. Empty if the request has no key. */
  keyIn(request: FastifyRequest): string;
}

const noCaller: Caller = { principal: null, session: null };

/** RFC 6750, 2.1: the scheme's name is case-insensitive. */
const bearer = /^bearer +([\x21-\x7e]{1,300}) *$/i;

/** Returns a 401 refusal, and counts it as a failed authentication. */
function unauthenticated(credential: 'none' | 'malformed' | 'key' | 'session' | 'run_token', detail: string): Refusal {
  count('runyard_authentication_failures_total', { credential });
  return refuse('authentication_required', { detail });
}

/** Returns the token of an `Authorization` header; empty if it has another form. */
export const bearerToken = (authorization: string): string => bearer.exec(authorization)?.[1] ?? '';

function tokenOf(request: FastifyRequest): string {
  const header = request.headers.authorization;
  if (header === undefined) throw unauthenticated('none', 'Send the header Authorization: Bearer <key>.');
  const token = bearer.exec(header)?.[1];
  if (token === undefined)
    throw unauthenticated('malformed', 'The Authorization header is not of the form Bearer <key>.');
  return token;
}

/** Returns the team that a request names: in the team header, in the same header under the name that published clients use, or in the
 * path. */
function teamOf(request: FastifyRequest): { readonly uid: string; readonly by: 'header' | 'path' } | undefined {
  const header = request.headers['x-team-uid'] ?? request.headers['x-warp-team-uid'];
  if (typeof header === 'string' && header !== '') return { uid: header, by: 'header' };
  const { teamUid } = (request.params ?? {}) as { readonly teamUid?: string };
  return teamUid === undefined ? undefined : { uid: teamUid, by: 'path' };
}

/** Returns the client of a request to an app of `makeApp`. */
export const clientOf = (request: FastifyRequest): Client =>
  request.server.getDecorator<TrustedProxies>('trustedProxies').clientOf(request.raw);

export function originOf(request: FastifyRequest): RequestOrigin {
  const { 'user-agent': userAgent = null, 'x-oz-api-source': source, traceparent } = request.headers;
  const apiSource = typeof source === 'string' ? { apiSource: source } : {};
  const trace = typeof traceparent === 'string' ? { traceparent } : {};
  const { address } = clientOf(request);
  return { address, userAgent, requestId: request.id, receivedMs: Date.now(), ...apiSource, ...trace };
}

/** Throws the refusal for a missing permission. `what` names the action that needs the permission. */
function requirePermission(permission: Permission, principal: Principal, what: string): void {
  switch (permission.kind) {
    case 'allowed':
      return;
    case 'not_operator': {
      const detail = `${what} needs the key of the operator of the service, which is in its data folder.`;
      throw refuse('not_authorized', { detail });
    }
    case 'wrong_kind': {
      const detail = `Keys of the kind ${principal.kind} may not call this endpoint; use a personal key.`;
      throw refuse('not_authorized', { detail });
    }
    case 'limited': {
      const detail = `This key is limited to ${permission.to}, so it may not call this endpoint.`;
      throw refuse('not_authorized', { detail });
    }
    case 'sign_in_again': {
      const detail = `${what} needs a session that began less than an hour ago. Sign in again, or use a personal key.`;
      throw refuse('not_authorized', { detail });
    }
    case 'role_too_low': {
      const detail = `${what} needs the role ${permission.needed} in the team; the key has the role ${principal.role}.`;
      throw refuse('not_authorized', { detail });
    }
  }
}

const whoMaySend = {
  key: 'This key',
  team: 'The team of this key',
  address: 'Without a key, this address',
  total: 'All callers without a key together',
} as const;

/** Returns the 429 for a caller that sends more requests than a limit allows. */
function tooManyRequests({ limit, quota, retryAfterSeconds }: NonNullable<RateOutcome['over']>): Refusal {
  const sender = whoMaySend[limit];
  return refuse('resource_unavailable', {
    detail: `${sender} may send ${quota} requests a minute. Send the request again after Retry-After seconds.`,
    headers: { 'retry-after': String(retryAfterSeconds) },
  });
}

/** Returns the 403 for a run that may not start other runs. */
const mayStartNone = (): Refusal =>
  refuse('not_authorized', {
    detail:
      'This run may not start other runs. To allow it, create the run with the mode orchestrate, or with config.child_runs {"enabled": true}.',
  });

/** Returns the 403 for a caller who is not in the team of the header. */
const notInTeam = (): Refusal =>
  refuse('not_authorized', {
    detail: 'You are not in the team that the team header names. GET /teams lists your teams.',
  });

/** Builds the authorizer of an app. */
export function makeAuthorizer(
  db: Database,
  keys: KeyDirectory,
  rateLimits: RateLimits,
  baseUrl: () => string,
  isPaused: () => boolean,
): Authorizer {
  const callers = new WeakMap<FastifyRequest, Caller>();

  /**
   * Returns the principal in the team that the request names. Returns null if the header names a team to which the caller does not
   * belong. If the path names
   * such a team, the handler answers 404.
   */
  const actIn = async (request: FastifyRequest, principal: Principal): Promise<Principal | null> => {
    const team = teamOf(request);
    if (team === undefined || team.uid === principal.teamUid) return principal;
    const member = await keys.inTeam(principal, team.uid);
    if (member) return member;
    return team.by === 'path' ? principal : null;
  };

  /** Returns the person of the session in the cookie; null if the request has no cookie or the session has ended. */
  const readSession = async (request: FastifyRequest): Promise<Principal | null> => {
    const key = sessionKeyOf(request);
    if (key === undefined) return null;
    const detail = refusalOfForged(request, key, baseUrl());
    if (detail !== null) throw refuse('not_authorized', { detail });
    const owner = await keys.authenticate(key);
    return owner?.kind === 'session' ? owner : null;
  };

  const admitKey = async (request: FastifyRequest, reply: FastifyReply, allow: AllowKeys) => {
    // A key in a header has priority over a cookie, because a browser sends a cookie by itself.
    const hasKey = request.headers.authorization !== undefined;
    const session = hasKey ? null : await readSession(request);
    if (!hasKey && !session) {
      if (allow.publicThings) {
        if (isPaused()) throw pausedCopy();
        return;
      }
      if (allow.keylessBytes) {
        const { over } = rateLimits.countKeyless(clientOf(request).address, performance.now());
        if (over) throw tooManyRequests(over);
        return;
      }
      if (sessionKeyOf(request) !== undefined)
        throw unauthenticated('session', 'The session has ended. Sign in again.');
    }
    const owner = session ?? (await keys.authenticate(tokenOf(request)));
    // A cookie may contain only the key of a session, and the key of a session is accepted only in a cookie.
    if (!owner || (!session && owner.kind === 'session'))
      throw unauthenticated('key', 'The key is unknown, expired or revoked.');
    const inTeam = await actIn(request, owner);
    const rate = rateLimits.count(inTeam ?? owner, performance.now());
    reply.headers(rate.headers);
    if (rate.over) throw tooManyRequests(rate.over);
    if (!inTeam) throw notInTeam();
    const principal = { ...inTeam, from: originOf(request) };
    if (isPaused() && principal.role !== 'owner') throw pausedCopy();
    requirePermission(checkPermission(allow, principal), principal, 'This endpoint');
    // All keys of a person or identity have one share together, because everybody can create many keys.
    request.nameCaller({ team: principal.teamId, id: `${principal.creator.kind} ${principal.creator.uid}` });
    callers.set(request, { principal, session: null });
  };

  const admitRun = async (request: FastifyRequest, { run: until, checksToken }: AllowRun) => {
    const token = tokenOf(request);
    const session = checksToken ? await identifyRunToken(db, token) : await authenticateRunToken(db, token);
    if (!session)
      throw unauthenticated('run_token', 'The run token is unknown, or its execution has ended or was superseded.');
    if (isPaused()) throw pausedCopy();
    request.nameCaller({ team: session.teamId, id: `run ${session.runId}` });
    callers.set(request, { principal: null, session });
    if (until === 'at_work' && 'phase' in session) {
      if (session.phase === 'stopping') throw stoppingAttempt();
      if ('onlyReports' in session && session.onlyReports) throw onlyReports();
    }
  };

  return {
    forRoute: (allow) => async (request, reply) => {
      if ('run' in allow) await admitRun(request, allow);
      else if ('user' in allow) await admitKey(request, reply, allow);
      // For `anyone`, the handler checks the signature of the URL, because only the handler knows the object of the URL.
    },
    checkBody: (allow, request, body) => {
      const { principal } = callers.get(request) ?? noCaller;
      if (!principal || !('user' in allow)) return;
      const { byBody } = allow;
      const permission = checkBodyPermission(allow, principal, body);
      requirePermission(permission, principal, `This value of ${byBody?.member ?? 'the body'}`);
    },
    checkRun: async (request) => {
      const { session } = callers.get(request) ?? noCaller;
      if (session && !(await readChildRunsPermission(db, session))) throw mayStartNone();
    },
    admitSignOn: (request) => {
      const { over } = rateLimits.countSignOn(clientOf(request).address, performance.now());
      if (over) throw tooManyRequests(over);
    },
    callerOf: (request) => callers.get(request) ?? noCaller,
    keyIn: (request) => {
      const { authorization } = request.headers;
      return authorization === undefined ? (sessionKeyOf(request) ?? '') : bearerToken(authorization);
    },
  };
}

/**
 * Returns the owner of the key in a worker's `Authorization` header; null if the key is malformed, unknown, expired or
 * revoked, or belongs to a browser session or a viewer.
 */
export async function authenticateWorker(
  keys: KeyDirectory,
  authorization: string | undefined,
): Promise<WorkerPrincipal | null> {
  const token = bearerToken(authorization ?? '');
  const principal = token === '' ? null : await keys.authenticateWorker(token);
  if (principal === null || principal.kind === 'session' || !isAtLeast(principal.role, 'member')) return null;
  return principal;
}

/** Returns the refusal of a signed URL that does not open `target`; null if the URL opens `target`. */
export function refuseSignature(
  deps: Pick<ServiceDeps, 'signing'>,
  target: SignedTarget,
  query: { readonly expires: string; readonly signature: string },
): Refusal | null {
  const check = checkSignedUrl(deps.signing, target, query);
  if (check === 'valid') return null;
  const detail = check === 'expired' ? 'The URL has expired; ask for a new one.' : 'The signature of the URL is wrong.';
  return refuse('not_authorized', { detail });
}
