/** The session of a browser, and the client that sends requests with the session's cookie. */

import { ApiError, type Client, createClient } from '@runyard/client';
import type { Team } from '@runyard/contract/team/teams';
import { isAtLeast, type Role } from '@runyard/contract/wire/access';
import type { UserProfile } from '@runyard/contract/wire/profiles';
import { createContext, use } from 'react';
import type { TeamStream } from './stream.ts';

/** The signed-in person and team of this browser. The service finds the session by the cookie of the browser. */
export interface Session {
  readonly person: UserProfile;
  readonly teams: readonly Team[];
  /** The team that the page shows. */
  readonly team: Team;
  readonly csrfToken: string;
  readonly expiresAt: string | undefined;
  readonly client: Client;
  /** Host of all repositories; undefined if the host differs between owners. */
  readonly codeHost: string | undefined;
  /** True: the person may read how the programs of the installation are. */
  readonly readsInstallation: boolean;
  /** Events of the runs of the team. */
  readonly events: TeamStream;
}

/** Name of the query member that selects the team. */
export const teamParameter = 'team';

/** Answers to the requests that `public/app/early.js` sends while this script is still being loaded. */

declare global {
  /** The answers by path and query. Absent if the page has not loaded `early.js`, for example in tests. */
  var earlyAnswers: Map<string, Promise<Response>> | undefined;
}

/**
 * Removes and returns the early answer to a read request. Returns undefined if there is no early answer, or if the answer is a
 * refusal. The client then sends the request itself.
 */
async function takeEarly(method: string | undefined, url: string): Promise<Response | undefined> {
  if (method !== 'GET') return undefined;
  const path = url.slice(location.origin.length);
  const early = globalThis.earlyAnswers?.get(path);
  globalThis.earlyAnswers?.delete(path);
  const answer = await early?.catch(() => undefined);
  return answer?.ok ? answer : undefined;
}

/** Returns the client of a session. Requests that change something include the session's token, which prevents forged requests. */
export function clientOf(csrfToken: string, teamUid?: string): Client {
  const send: typeof fetch = async (input, init) =>
    (await takeEarly(init?.method, String(input))) ??
    (await fetch(input, {
      ...init,
      credentials: 'same-origin',
      headers: { ...init?.headers, ...(csrfToken === '' ? {} : { 'x-csrf-token': csrfToken }) },
    }));
  return createClient({ baseUrl: location.origin, fetch: send, ...(teamUid === undefined ? {} : { teamUid }) });
}

/** Returns true if the error of the service means that no person is signed in. */
export const isSignedOut = (error: unknown): boolean => error instanceof ApiError && error.status === 401;

export const SessionContext = createContext<Session | null>(null);

/** Returns the session. Can be called only in screens for signed-in people. */
export function useSession(): Session {
  const session = use(SessionContext);
  if (session === null) throw new Error('no person is signed in');
  return session;
}

/** Returns the client of the session. */
export const useClient = (): Client => useSession().client;

/** Returns true if the person has at least the role `needed` in the team that the page shows. */
export function useMay(needed: Role): boolean {
  return isAtLeast(useSession().team.role, needed);
}
