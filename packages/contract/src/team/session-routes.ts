import { DeleteResponse } from '../wire/bodies.ts';
import type { Route } from '../wire/route.ts';
import {
  BrowserSession,
  CreateBrowserSessionRequest,
  CreateSignInCodeResponse,
  ReadSignInCodeRequest,
  Session,
  SignInCodeOwner,
} from './browser-sessions.ts';
import { ListSignOnProvidersResponse, StartSignOnRequest, StartSignOnResponse, signOnMinutes } from './sign-on.ts';

const tooOften =
  'Too many sign-ins with an identity provider from this address, or too many concurrent requests with a body; `Retry-After` tells when to send it again';
const providerAway =
  'The identity provider does not answer, or its answer is not valid; `Retry-After` tells when to try again';

export const browserSessionRoutes = {
  // Agent keys are refused, because a session acts for a person. Sessions are refused, because a session must not extend its own lifetime.
  createSignInCode: {
    method: 'POST',
    path: '/sign-in-codes',
    tag: 'keys',
    summary: 'Create a one-time code that signs in a browser',
    description:
      'The code is valid for a minute and for one sign-in. Deleting the key also ends the code and the sessions that were created with it.',
    allow: { user: 'viewer', session: false },
    answer: { status: 201, description: 'The code, which is shown only once', schema: CreateSignInCodeResponse },
  },
  // The code is the credential of this request. A stranger may have sent the link, so a page shows whose it is before it signs in.
  readSignInCode: {
    method: 'POST',
    path: '/sign-in-codes/owner',
    tag: 'keys',
    summary: 'Read whom a one-time code signs in',
    description: 'Does not use the code.',
    allow: { anyone: 'always' },
    body: ReadSignInCodeRequest,
    answer: { status: 200, description: 'The person', schema: SignInCodeOwner },
    errors: { 403: 'The code was used, has expired or is unknown' },
  },
  createBrowserSession: {
    method: 'POST',
    path: '/browser-sessions',
    tag: 'keys',
    summary: 'Sign in a browser',
    description:
      'For the pages of the service: requests of other origins are refused. The session is a cookie that scripts cannot read, over https or on this machine. Among the API keys the session is listed, and can be deleted.',
    allow: { anyone: 'always' },
    body: CreateBrowserSessionRequest,
    answer: {
      status: 200,
      description: 'Signed in',
      schema: BrowserSession,
      headers: { 'Set-Cookie': 'The session: HttpOnly, SameSite=Strict' },
    },
    errors: {
      403: 'The code was used, has expired or is unknown; the key does not belong to a person; the identity provider refused the person, or its answer is not for this browser or was already used; the passkey is unknown, or its answer is not for this page, was not verified by its authenticator, or was already used; the person is in no team; or the request is not from a page of the service over https or on this machine',
      409: 'The invitation cannot be accepted',
      429: tooOften,
      503: providerAway,
    },
  },
  listSignOnProviders: {
    method: 'GET',
    path: '/sign-on',
    tag: 'keys',
    summary: 'List the identity providers',
    description: 'The identity providers for single sign-on, for the sign-in page.',
    allow: { anyone: 'always' },
    answer: { status: 200, description: 'Their ids and names', schema: ListSignOnProvidersResponse },
  },
  startSignOn: {
    method: 'POST',
    path: '/sign-on',
    tag: 'keys',
    summary: 'Begin a sign-in with an identity provider',
    description: `For the pages of the service. The answer binds the sign-in to this browser by a cookie, for ${signOnMinutes} minutes. The provider sends the browser back to \`/sign-in\`, and that page sends its query to POST /browser-sessions.`,
    allow: { anyone: 'always' },
    body: StartSignOnRequest,
    answer: {
      status: 200,
      description: 'The browser opens `url`',
      schema: StartSignOnResponse,
      headers: { 'Set-Cookie': 'The sign-in that has begun: HttpOnly, SameSite=Strict' },
    },
    errors: {
      403: 'The request is not from a page of the service at its base URL, over https or on this machine',
      404: 'No such provider',
      429: tooOften,
      503: providerAway,
    },
  },
  endBrowserSession: {
    method: 'DELETE',
    path: '/browser-sessions/current',
    tag: 'keys',
    summary: 'Sign out a browser',
    description: 'The key of the session stops working at once.',
    allow: { user: 'viewer' },
    answer: { status: 200, description: 'Signed out', schema: DeleteResponse },
    errors: { 404: 'The key does not belong to a browser session' },
  },
  endBrowserSessions: {
    method: 'DELETE',
    path: '/browser-sessions',
    tag: 'keys',
    summary: 'Sign out all browsers of a person',
    description: 'All browser sessions and unused sign-in links of the caller stop working at once, in all teams.',
    allow: { user: 'viewer' },
    answer: { status: 200, description: 'Signed out', schema: DeleteResponse },
  },
  getSession: {
    method: 'GET',
    path: '/session',
    tag: 'keys',
    summary: 'Read the signed-in person',
    description:
      'The person, the teams, and for a browser session the token for further requests: requests that change something send `csrf_token` as `X-CSRF-Token`. The header X-Team-Uid chooses the team.',
    allow: { user: 'viewer' },
    answer: { status: 200, description: 'The caller', schema: Session },
  },
} as const satisfies Record<string, Route>;
