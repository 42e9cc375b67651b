import type { routes } from '@runyard/contract/routes';
import { queryOptions, useQuery, useQueryClient } from '@tanstack/react-query';
import { Outlet, useNavigate, useRouter, useSearch } from '@tanstack/react-router';
import { lazy, Suspense, useEffect, useMemo, useState } from 'react';
import type { z } from 'zod';
import { dropDrafts } from '../api/drafts.ts';
import { isOwnSession, rememberSession } from '../api/own-sign-in.ts';
import { clientOf, isSignedOut, type Session, SessionContext, teamParameter } from '../api/session.ts';
import { openTeamStream } from '../api/stream.ts';
import { oneOf } from '../frame/search.ts';
import { P, Stack } from '../parts/blocks.tsx';
import { Button } from '../parts/controls.tsx';
import { Shell } from './shell.tsx';

const OtherSession = lazy(async () => ({ default: (await import('./other-session.tsx')).OtherSession }));

/** Returns the query for the signed-in person. `team` is the team that the address names. */
export const sessionQuery = (team: string | undefined) =>
  queryOptions({
    queryKey: ['session', team],
    queryFn: async () => await clientOf('', team).getSession(),
    staleTime: 60_000,
  });

/**
 * Shows the screens to a person who is signed in. The route has read the session before, and has redirected a person without a session to
 * the sign-in.
 */
export function SignedIn() {
  const team = oneOf(useSearch({ strict: false, select: (search) => search[teamParameter] }));
  const { data } = useQuery(sessionQuery(team));
  const [, setAgreed] = useState(false);
  if (data === undefined) return null;
  if (data.kind === 'session' && !isOwnSession(data.uid))
    return (
      <Suspense>
        <OtherSession
          answer={data}
          agree={() => {
            rememberSession(data.uid);
            setAgreed(true);
          }}
        />
      </Suspense>
    );
  return <WithSession answer={data} />;
}

/** Answer of `GET /session`. */
export type SessionAnswer = z.infer<(typeof routes)['getSession']['answer']['schema']>;

function WithSession({ answer }: { answer: SessionAnswer }) {
  const queries = useQueryClient();
  const navigate = useNavigate();
  const router = useRouter();
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
      codeHost: answer.code_host,
      readsInstallation: answer.reads_installation === true,
      events: openTeamStream({ team }),
    };
  }, [answer]);
  useEffect(() => () => session?.events.close(), [session]);
  useEffect(() => dropDrafts(answer.user.uid), [answer.user.uid]);
  useEffect(() => {
    // Go to the sign-in page if a request gets 401, because the session has then ended.
    return queries.getQueryCache().subscribe(({ type, query }) => {
      if (type !== 'updated' || !isSignedOut(query.state.error)) return;
      queries.removeQueries({ queryKey: ['session'] });
      void router.invalidate();
    });
  }, [queries, router]);
  if (session === null)
    return (
      <Stack as="main" pad>
        <h1>You are in no team</h1>
        <P tone="muted">Ask an administrator for an invitation, and open it here.</P>
        <Button start onClick={() => void navigate({ to: '/sign-in' })}>
          Accept an invitation
        </Button>
      </Stack>
    );
  return (
    <SessionContext value={session}>
      {/* The key makes new screens for another team, so that no screen shows what it has read in the team before. */}
      <Shell key={session.team.uid}>
        <Outlet />
      </Shell>
    </SessionContext>
  );
}
