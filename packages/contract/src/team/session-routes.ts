import { DeleteResponse } from '../wire/bodies.ts';
import type { Route } from '../wire/route.ts';
import { BrowserSession, CreateBrowserSessionRequest, CreateSignInCodeResponse } from './browser-sessions.ts';

export const browserSessionRoutes = {
  // Not for agent keys, because a session acts for a person. Not for sessions, because a session must not prolong itself.
  createSignInCode: {
    method: 'POST',
    path: '/sign-in-codes',
    tag: 'keys',
    summary: 'Create a one-time code that signs in a browser',
    description:
      'The code is valid for a minute and for one sign-in. Deleting the key ends the code and the sessions that came from it.',
    allow: { user: 'viewer' },
    answer: { status: 201, description: 'The code, which is shown only once', schema: CreateSignInCodeResponse },
  },
  createBrowserSession: {
    method: 'POST',
    path: '/browser-sessions',
    tag: 'keys',
    summary: 'Sign in a browser by a one-time code',
    description:
      'For the pages of the service: requests of other origins are refused. Among the API keys the session is listed, and can be deleted.',
    allow: { anyone: 'always' },
    body: CreateBrowserSessionRequest,
    answer: { status: 200, description: 'Signed in', schema: BrowserSession },
    errors: { 403: 'The code was used, has expired or is unknown, or the request is not from a page of the service' },
  },
  endBrowserSession: {
    method: 'DELETE',
    path: '/browser-sessions/current',
    tag: 'keys',
    summary: 'Sign out a browser',
    description: 'The key of the session stops working at once.',
    allow: { user: 'viewer', session: true },
    answer: { status: 200, description: 'Signed out', schema: DeleteResponse },
    errors: { 404: 'The key is not that of a browser session' },
  },
} as const satisfies Record<string, Route>;
