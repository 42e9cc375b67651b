/** Who is signed in, and the client that sends requests with the cookie of the session. */

import { ApiError, type Client, createClient } from '@runyard/client';
import { isAtLeast, type Role } from '@runyard/contract/wire/access';
import { createContext, use } from 'react';
import type { TeamStream } from './stream.ts';

/** A team of the person. */
export interface SessionTeam {
  readonly uid: string;
  readonly name: string;
  readonly role: Role;
}

/** The session that the service knows by the cookie of this browser. */
export interface Session {
  readonly person: { readonly uid: string; readonly name: string; readonly email?: string };
  readonly teams: readonly SessionTeam[];
  /** The team that the page shows. */
  readonly team: SessionTeam;
  readonly csrfToken: string;
  readonly expiresAt: string;
  readonly client: Client;
  /** Events of the runs of the team. */
  readonly events: TeamStream;
}

/** Name of the query member that selects the team. */
export const teamParameter = 'team';

/** Returns the client of a session. Each request that changes something carries its token against forged requests. */
export function clientOf(csrfToken: string, teamUid?: string): Client {
  const send: typeof fetch = (input, init) =>
    fetch(input, {
      ...init,
      credentials: 'same-origin',
      headers: { ...init?.headers, ...(csrfToken === '' ? {} : { 'x-csrf-token': csrfToken }) },
    });
  return createClient({ baseUrl: location.origin, fetch: send, ...(teamUid === undefined ? {} : { teamUid }) });
}

/** What `GET /session` answers. */
export interface SessionAnswer {
  readonly user: { readonly uid: string; readonly name: string; readonly email?: string };
  readonly teams: readonly (SessionTeam & { readonly is_current: boolean })[];
  readonly csrf_token: string;
  readonly expires_at: string;
}

/** Reads who is signed in. */
export async function readSession(teamUid?: string): Promise<SessionAnswer> {
  const client = clientOf('', teamUid) as unknown as { getSession(): Promise<SessionAnswer> };
  return await client.getSession();
}

/** Returns true if the service says that nobody is signed in. */
export const isSignedOut = (error: unknown): boolean => error instanceof ApiError && error.status === 401;

export const SessionContext = createContext<Session | null>(null);

/** Returns the session. Only screens below the signed-in part of the app call it. */
export function useSession(): Session {
  const session = use(SessionContext);
  if (session === null) throw new Error('nobody is signed in');
  return session;
}

/** Returns the client of the session. */
export const useClient = (): Client => useSession().client;

/** Returns whether the person may do what needs the role `needed` in the team that the page shows. */
export function useMay(needed: Role): boolean {
  return isAtLeast(useSession().team.role, needed);
}
