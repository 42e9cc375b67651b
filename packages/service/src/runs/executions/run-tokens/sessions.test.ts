import { routes } from '@runyard/contract/routes';
import { expect, test } from 'vitest';
import { serve, serveOnce } from '../../../team/access/serve.ts';
import { serveRun } from './sessions.ts';

test('the TypeScript compiler refuses a handler that does not match its route', () => {
  const entries = [
    // @ts-expect-error: the contract marks the route with `once`, so only `serveOnce` may serve it.
    serve(routes.createTeam, async () => null as never),
    // @ts-expect-error: the contract does not mark the route with `once`, so `serveOnce` may not serve it.
    serveOnce(routes.listKeys, { work: async () => null as never }),
    // @ts-expect-error: the result is not the answer of the route, and no step converts it to the answer.
    serveOnce(routes.createTeam, { work: async () => 3 }),
    // @ts-expect-error: the answer of the route has other members.
    serve(routes.listKeys, async () => ({ teams: [] })),
    // @ts-expect-error: only the handlers of serveRun get the session of a run token.
    serve(routes.listChildRuns, async ({ session }) => session.runId as never),
    // @ts-expect-error: only the handlers of serve get the owner of a key.
    serveRun(routes.listKeys, async ({ principal }) => principal.teamId as never),
  ];
  expect(entries.map(({ route }) => route)).toContain(routes.createTeam);
});
