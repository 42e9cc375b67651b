/** Who may call what: the one place where keys and run tokens are asked for. */
import type { Route } from '@runyard/contract/route';
import type { FastifyRequest } from 'fastify';
import type { KeyDirectory } from '../../access/keys/directory.ts';
import type { Principal } from '../../access/keys/principal.ts';
import { authenticateRunToken, type RunSession } from '../../executions/run-tokens/sessions.ts';
import type { Database } from '../../store/database/database.ts';
import { type Refusal, refuse, stoppingAttempt } from './problem.ts';

/** Who calls. */
export interface Caller {
  readonly principal: Principal | null;
  readonly session: RunSession | null;
}

export interface Authorizer {
  /** Hook that runs before the body is read; throws the refusal. */
  forRoute(route: Pick<Route, 'auth' | 'whileStopping'>): (request: FastifyRequest) => Promise<void>;
  /** What the hook found. */
  callerOf(request: FastifyRequest): Caller;
}

const nobody: Caller = { principal: null, session: null };

/** RFC 6750, 2.1: the scheme's name is case-insensitive. */
const bearer = /^bearer +([\x21-\x7e]{1,300}) *$/i;

const unauthenticated = (detail: string): Refusal => refuse('authentication_required', { detail });

/** The token of an `Authorization` header; '' where it is of another form. */
export const bearerToken = (authorization: string): string => bearer.exec(authorization)?.[1] ?? '';

function tokenOf(request: FastifyRequest): string {
  const header = request.headers.authorization;
  if (header === undefined) throw unauthenticated('Send the header Authorization: Bearer <key>.');
  const token = bearer.exec(header)?.[1];
  if (token === undefined) throw unauthenticated('The Authorization header is not of the form Bearer <key>.');
  return token;
}

/** Published clients send the second name. A caller in one team needs neither. */
function checkTeam(request: FastifyRequest, principal: Principal): void {
  const team = request.headers['x-team-uid'] ?? request.headers['x-warp-team-uid'];
  if (team !== undefined && team !== '' && team !== principal.teamUid) {
    throw refuse('not_authorized', { detail: 'The key does not belong to the team that the team header names.' });
  }
}

/** Builds the authorizer of an app. */
export function makeAuthorizer(db: Database, keys: KeyDirectory): Authorizer {
  const callers = new WeakMap<FastifyRequest, Caller>();

  const withKey = async (request: FastifyRequest) => {
    const principal = await keys.authenticate(tokenOf(request));
    if (!principal) throw unauthenticated('The key is unknown, expired or revoked.');
    checkTeam(request, principal);
    callers.set(request, { principal, session: null });
  };
  const withRunToken = async (request: FastifyRequest) => {
    const session = await authenticateRunToken(db, tokenOf(request));
    if (!session) throw unauthenticated('The run token is unknown, or its execution has ended or was superseded.');
    callers.set(request, { principal: null, session });
    return session;
  };
  const withWorkingRunToken = async (request: FastifyRequest) => {
    if ((await withRunToken(request)).phase === 'stopping') throw stoppingAttempt();
  };
  const hooks: Record<Route['auth'], (request: FastifyRequest) => Promise<void>> = {
    key: withKey,
    optional_key: async (request) => {
      if (request.headers.authorization !== undefined) await withKey(request);
    },
    run_token: withWorkingRunToken,
    // Checked by the handler, which knows the object.
    signature: async () => undefined,
    none: async () => undefined,
  };
  const reportingHook = async (request: FastifyRequest) => void (await withRunToken(request));
  return {
    forRoute: ({ auth, whileStopping }) => (whileStopping ? reportingHook : hooks[auth]),
    callerOf: (request) => callers.get(request) ?? nobody,
  };
}
