import { skipToken, useQuery } from '@tanstack/react-query';
import { useLocation, useNavigate } from '@tanstack/react-router';
import { use, useEffect } from 'react';
import { clientOf, type Session, SessionContext, teamParameter } from '../api/session.ts';
import { P, Stack, TextLink } from '../parts/blocks.tsx';
import { SkeletonRows } from '../parts/empty.tsx';

/** Returns the UID of another team of the person that owns the thing at `path`; null if there is none. */
async function ownerOf(path: string, { teams, team, csrfToken }: Session): Promise<string | null> {
  for (const { uid } of teams) {
    if (uid === team.uid) continue;
    const { results } = await clientOf(csrfToken, uid).search({ query: { q: path } });
    if (results.some((found) => found.is_id_match && path.startsWith(found.path))) return uid;
  }
  return null;
}

/**
 * Shows that an object was not found. Lists all possible reasons, because the answer of the service is the same for all of them. If the
 * address names no team and another team of the person owns the object, opens the object in this team instead.
 */
export function NotFound({ what = 'page' }: { what?: string }) {
  const session = use(SessionContext);
  const navigate = useNavigate();
  const { pathname, search } = useLocation();
  const mayBeElsewhere = session !== null && session.teams.length > 1 && search[teamParameter] === undefined;
  const { data: owner, isLoading } = useQuery({
    queryKey: ['owner', pathname],
    queryFn: mayBeElsewhere ? async () => await ownerOf(pathname, session) : skipToken,
  });
  useEffect(() => {
    if (typeof owner !== 'string') return;
    void navigate({
      to: '.',
      search: (before) => ({ ...before, [teamParameter]: owner }),
      hash: true,
      replace: true,
    });
  }, [owner, navigate]);
  if (isLoading || typeof owner === 'string') return <SkeletonRows />;
  return (
    <Stack pad>
      <h1>There is no such {what}</h1>
      <P tone="muted">
        The address may be wrong, the {what} may belong to another team, or it was deleted.{' '}
        {/* Without a session, the team of the address may be the reason. So the link leads to the person's own team. */}
        <TextLink to="/runs" search={session === null ? { [teamParameter]: undefined } : {}}>
          Open the runs
        </TextLink>
      </P>
    </Stack>
  );
}
