import type { routes } from '@runyard/contract/routes';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { Navigate, Outlet, useNavigate, useRouter, useSearch } from '@tanstack/react-router';
import { memo, useEffect, useMemo, useState } from 'react';
import type { z } from 'zod';
import { clientOf, isSignedOut, type Session, SessionContext, teamParameter } from '../api/session.ts';
import { openTeamStream } from '../api/stream.ts';
import { oneOf } from '../frame/search.ts';
import { Problem } from '../parts/problem.tsx';
import { Shell } from './shell.tsx';

/** Reads who is signed in. A person who is not signed in goes to the sign-in and comes back afterwards. */
export function SignedIn() {
  const team = oneOf(useSearch({ strict: false, select: (search) => search[teamParameter] }));
  const { data, error, refetch } = useQuery({
    queryKey: ['session', team],
    queryFn: async () => await clientOf('', team).getSession(),
    staleTime: 60_000,
  });
  if (isSignedOut(error)) return <ToSignIn />;
  if (error)
    return (
      <main className="pad">
        <Problem error={error} onRetry={() => void refetch()} />
      </main>
    );
  if (data === undefined) return null;
  return <WithSession answer={data} />;
}

/** Leads to the sign-in, once: the address changes while the files of the sign-in load, and `Navigate` goes again at each render. */
const ToSignIn = memo(function ToSignIn() {
  const router = useRouter();
  const [{ pathname, searchStr, hash }] = useState(router.state.location);
  return <Navigate to="/sign-in" search={{ next: pathname + searchStr }} hash={hash} replace />;
});

/** What `GET /session` answers. */
type SessionAnswer = z.infer<(typeof routes)['getSession']['answer']['schema']>;

function WithSession({ answer }: { answer: SessionAnswer }) {
  const queries = useQueryClient();
  const navigate = useNavigate();
  const session = useMemo((): Session | null => {
    const team = answer.teams.find(({ is_current }) => is_current) ?? answer.teams[0];
    if (team === undefined) return null;
    return {
      person: answer.user,
      teams: answer.teams,
      team,
      csrfToken: answer.csrf_token ?? '',
      expiresAt: answer.expires_at,
      client: clientOf(answer.csrf_token ?? '', team.uid),
      events: openTeamStream({ team }),
    };
  }, [answer]);
  useEffect(() => () => session?.events.close(), [session]);
  useEffect(() => {
    // A request that finds the session ended leads to the sign-in.
    return queries.getQueryCache().subscribe(({ type, query }) => {
      if (type === 'updated' && isSignedOut(query.state.error) && query.queryKey[0] !== 'session')
        void queries.invalidateQueries({ queryKey: ['session'] });
    });
  }, [queries]);
  if (session === null)
    return (
      <main className="pad stack">
        <h1>You are in no team</h1>
        <p className="mut">Ask an administrator for an invitation, and open it here.</p>
        <button type="button" className="btn start" onClick={() => void navigate({ to: '/sign-in' })}>
          Accept an invitation
        </button>
      </main>
    );
  return (
    <SessionContext value={session}>
      <Shell>
        <Outlet />
      </Shell>
    </SessionContext>
  );
}
