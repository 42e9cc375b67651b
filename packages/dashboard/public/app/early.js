// Starts the requests of the first screen while the scripts of the dashboard load. `src/api/early.ts` gives their answers to the client.
{
  const { pathname, search } = location;
  const team = new URLSearchParams(search).get('team');
  const paths = pathname === '/sign-in' ? [] : ['/api/v1/session'];
  if (pathname === '/runs' && (search === '' || search === `?team=${team}`))
    paths.push('/api/v1/agent/runs?sort_by=updated_at&sort_order=desc&view=summary&limit=100');
  const headers = team === null ? {} : { 'x-team-uid': team };
  globalThis.earlyAnswers = new Map(paths.map((path) => [path, fetch(path, { headers })]));
}
