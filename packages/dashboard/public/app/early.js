// Starts the requests of the first screen while the scripts of the dashboard load. `src/api/session.ts` gives their answers to the client.
{
  const { pathname, search } = location;
  const team = new URLSearchParams(search).get('team');
  const paths = pathname === '/sign-in' ? [] : ['/session'];
  if (pathname === '/runs' && (search === '' || search === `?team=${team}`))
    paths.push('/agent/runs?sort_by=updated_at&sort_order=desc&view=summary&limit=100');
  const run = /^\/runs\/([\da-f-]{36})$/.exec(pathname)?.[1];
  if (run !== undefined)
    for (const part of ['', '/conversation/messages?limit=200', '/timeline']) paths.push(`/agent/runs/${run}${part}`);
  const headers = team === null ? {} : { 'x-team-uid': team };
  const read = (path) => [`/api/v1${path}`, fetch(`/api/v1${path}`, { headers })];
  globalThis.earlyAnswers = new Map(paths.map(read));
}
